package admission

import (
	"testing"
	"time"
)

// waitingClients simulates clients that each try again when their pause has passed, and of which a relay
// relay accepts some a second. It returns the mean pause and the tries a second in the last half of the time.
func waitingClients(clients, accepts, seconds int) (pause time.Duration, tries int) {
	var b busyPause
	began := time.Unix(1_800_000_000, 0)
	refused, due := 0, make([]time.Duration, clients)
	for i := range due {
		due[i] = time.Duration(i) * time.Second / time.Duration(clients)
	}
	for step := range 10 * seconds { // of a tenth of a second
		at := time.Duration(step) * time.Second / 10
		counted := step >= 5*seconds
		left := accepts / 10
		for i := range due {
			switch {
			case due[i] > at:
			case left > 0: // another client takes its place
				left--
				b.countAccepted(began.Add(at))
				if counted {
					tries++
				}
			default:
				wait := b.countRefused(began.Add(at))
				due[i] = at + wait
				if counted {
					tries++
					refused++
					pause += wait
				}
			}
		}
	}
	return pause / time.Duration(max(refused, 1)), 2 * tries / seconds
}

func TestPausesFollowTheNumberOfWaitingClients(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		clients, accepts int
		wantPause        time.Duration
		tolerateTries    int
	}{
		"a few more than are accepted": {clients: 150, accepts: 100, wantPause: time.Second, tolerateTries: 400},
		"ten times as many":            {clients: 1000, accepts: 100, wantPause: 10 * time.Second, tolerateTries: 400},
		"too many for any pause":       {clients: 10_000, accepts: 100, wantPause: maxPause * time.Second, tolerateTries: 1000},
		"none is accepted":             {clients: 1000, accepts: 0, wantPause: unknownPause * time.Second, tolerateTries: 400},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pause, tries := waitingClients(tc.clients, tc.accepts, 120)
			if pause < tc.wantPause*7/10 || pause > tc.wantPause*13/10 || tries > tc.tolerateTries {
				t.Errorf("told to wait for %s, %d tries a second; want about %s, at most %d", pause, tries, tc.wantPause, tc.tolerateTries)
			}
		})
	}
}

func TestAPauseIsShortAgainAfterAnOverload(t *testing.T) {
	t.Parallel()
	var b busyPause
	now := time.Unix(1_800_000_000, 0)
	for range 1000 {
		b.countRefused(now)
	}
	b.countAccepted(now)
	if got := b.countRefused(now.Add(time.Second)); got < maxPause/2*time.Second {
		t.Fatalf("while next to nothing is accepted the pause is %s, want at least %d s", got, maxPause/2)
	}
	if got := b.countRefused(now.Add(time.Minute)); got != time.Second {
		t.Errorf("a minute later the pause is %s, want 1 s", got)
	}
}
