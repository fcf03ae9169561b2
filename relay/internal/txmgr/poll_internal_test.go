package txmgr

import (
	"testing"
	"time"
)

// TestWhenAllHistoryIsSearched: soon when an outcome waits for a second
// endpoint, whose recent statuses may have forgotten it before it answers again.
func TestWhenAllHistoryIsSearched(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	tests := map[string]struct {
		signed          time.Time
		doubted, settle time.Time
		want            bool
	}{
		"a young attempt that nobody has seen":     {signed: ago(resolveAge), want: false},
		"an old one":                               {signed: ago(resolveAge + 1), want: true},
		"an old one that was looked up just now":   {signed: ago(time.Hour), settle: now.Add(1), want: false},
		"an old one that is due again":             {signed: ago(time.Hour), settle: now, want: true},
		"one of which one endpoint has just heard": {signed: ago(time.Second), doubted: ago(unverifiedAfter - 1), want: false},
		"one that waits for a second endpoint":     {signed: ago(3 * time.Second), doubted: ago(unverifiedAfter), want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &tracker{m: &Manager{Options: Options{Now: func() time.Time { return now }}}}
			w := &entry{j: &Job{Live: []Attempt{{CreatedAt: test.signed}}}, unverifiedSince: test.doubted, resolveAt: test.settle}
			if got := tr.isOld(w); got != test.want {
				t.Errorf("looked up: %t, want %t", got, test.want)
			}
		})
	}
}

// TestADoubtIsOverWithTheAttemptThatItWasOf: a new attempt starts without the doubt.
func TestADoubtIsOverWithTheAttemptThatItWasOf(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		signed time.Time
		kept   bool
	}{
		"the attempt that is doubted may still land": {at.Add(-time.Second), true},
		"another was signed since":                   {at.Add(time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &tracker{m: &Manager{Options: Options{Now: time.Now}}}
			w := &entry{j: &Job{since: test.signed}, unverifiedSince: at, recorded: true}
			tr.track(w)
			if kept := !w.unverifiedSince.IsZero(); kept != test.kept || w.recorded != test.kept {
				t.Errorf("it is doubted: %t, and noted: %t, want %t", kept, w.recorded, test.kept)
			}
		})
	}
}
