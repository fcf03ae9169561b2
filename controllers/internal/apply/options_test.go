package apply_test

import (
	"strings"
	"testing"

	"github.com/relaypool/relaypool/controllers/internal/apply"
)

func TestNewRefusesMissingOptions(t *testing.T) {
	t.Parallel()
	_, err := apply.New(apply.Options{})
	for _, name := range []string{"Client", "Live", "Capabilities", "Now"} {
		if err == nil || !strings.Contains(err.Error(), "option "+name+" is not set") {
			t.Errorf("error %v, want it to name %s", err, name)
		}
	}
	if _, err := apply.NewCapabilities(nil, nil, 0); err == nil {
		t.Error("NewCapabilities returned no error without arguments")
	}
}
