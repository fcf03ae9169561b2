package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLastWordsOfALogAreRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, tc := range map[string]struct {
		log  string
		want bool
	}{
		"the last line":         {strings.Repeat("Applied Deployment\n", 1000) + "operator: " + leaseLost + "\n", true},
		"the only line":         {"operator: " + leaseLost, true},
		"a line of long before": {leaseLost + "\n" + strings.Repeat("Applied Deployment\n", 1000), false},
		"another reason":        {"panic: runtime error\n", false},
		"nothing":               {"", false},
	} {
		path := filepath.Join(folder, name+".log")
		if err := os.WriteFile(path, []byte(tc.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := endsWith(path, leaseLost); err != nil || got != tc.want {
			t.Errorf("%s: %t, error %v; want %t", name, got, err, tc.want)
		}
	}
	// The follower of a container that ended at once may have made none.
	if got, err := endsWith(filepath.Join(folder, "none.log"), leaseLost); err != nil || got {
		t.Errorf("a log that is not there: %t, error %v", got, err)
	}
}
