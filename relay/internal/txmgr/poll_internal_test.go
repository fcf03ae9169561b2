package txmgr

import (
	"testing"
	"time"
)

// TestOldAndUnverifiedAttemptsAreSearched: an unverified attempt is searched soon, because the second endpoint
// may answer only after its recent statuses no longer have the attempt.
func TestOldAndUnverifiedAttemptsAreSearched(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	tests := map[string]struct {
		signed                time.Time
		unverified, resolveAt time.Time
		want                  bool
	}{
		"a young attempt": {signed: ago(30 * time.Second), want: false},
		"an old attempt":  {signed: ago(30*time.Second + 1), want: true},
		"an old attempt that was searched just now":   {signed: ago(time.Hour), resolveAt: now.Add(1), want: false},
		"an old attempt that is due again":            {signed: ago(time.Hour), resolveAt: now, want: true},
		"an attempt that has just become unverified":  {signed: ago(time.Second), unverified: ago(unverifiedAfter - 1), want: false},
		"an attempt that waits for a second endpoint": {signed: ago(3 * time.Second), unverified: ago(unverifiedAfter), want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &tracker{m: &Manager{Options: Options{Now: func() time.Time { return now }, SlotDuration: func() time.Duration { return 200 * time.Millisecond }}}}
			w := &entry{j: &Job{Live: []Attempt{{CreatedAt: test.signed}}}, unverifiedSince: test.unverified, resolveAt: test.resolveAt}
			if got := tr.mustSearch(w); got != test.want {
				t.Errorf("searched: %t, want %t", got, test.want)
			}
		})
	}
}

// TestNewAttemptIsNotUnverified: only an earlier attempt was unverified.
func TestNewAttemptIsNotUnverified(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		signed time.Time
		kept   bool
	}{
		"the unverified attempt is the newest": {at.Add(-time.Second), true},
		"another attempt was signed since":     {at.Add(time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &tracker{m: &Manager{Options: Options{Now: time.Now, SlotDuration: func() time.Duration { return time.Second }}}}
			w := &entry{j: &Job{since: test.signed}, unverifiedSince: at, unverifiedRecorded: true}
			tr.track(w)
			if kept := !w.unverifiedSince.IsZero(); kept != test.kept || w.unverifiedRecorded != test.kept {
				t.Errorf("the job is unverified: %t, and recorded as such: %t; want both %t", kept, w.unverifiedRecorded, test.kept)
			}
		})
	}
}
