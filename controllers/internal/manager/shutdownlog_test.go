package manager

import (
	"bytes"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
)

// Whether the library logs the line before the process has ended depends on timing, so the
// test logs it with the library's own logger.
func TestAStoppingLeaderLogsNoError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stopping bool
		message  string
		err      error
		want     bool // the line is logged
	}{
		"the Lease is released":                {true, "error received after stop sequence was engaged", errors.New("leader election lost"), false},
		"the Lease is lost":                    {false, "error received after stop sequence was engaged", errors.New("leader election lost"), true},
		"something else fails at the end":      {true, "error received after stop sequence was engaged", errors.New("boom"), true},
		"the same error under another message": {true, "Could not renew", errors.New("leader election lost"), true},
		"the same message without an error":    {true, "error received after stop sequence was engaged", nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			stopping := new(atomic.Bool)
			log := logr.FromSlogHandler(quietShutdown{slog.NewTextHandler(&out, nil), stopping}).WithName("manager").WithValues("a", 1)
			stopping.Store(tt.stopping)
			log.Error(tt.err, tt.message)
			if got := out.Len() > 0; got != tt.want {
				t.Errorf("logged: %t, want %t: %s", got, tt.want, &out)
			}
		})
	}
}
