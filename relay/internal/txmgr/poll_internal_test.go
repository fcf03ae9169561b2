package txmgr

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
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

// statusCalls is a chain that keeps how many signatures each call asks for. It knows no signature, or fails.
type statusCalls struct {
	Chain
	sizes []int
	err   error
}

func (c *statusCalls) Statuses(_ context.Context, signatures []solana.Signature) ([]*onchain.Status, uint64, error) {
	c.sizes = append(c.sizes, len(signatures))
	return make([]*onchain.Status, len(signatures)), 0, c.err
}

// Landed jobs wait for nothing but finality.
func TestLandedJobsArePolledOnceTheyMayBeFinal(t *testing.T) {
	t.Parallel()
	const final = 50
	for name, test := range map[string]struct {
		inFlight, landed, later int // jobs; the later ones landed in a slot that is not final
		wrong                   int // jobs with a slot that nobody has reached
		finalized               uint64
		fails                   bool
		sizes                   []int // of the calls in finalityEvery polls
	}{
		"some are in flight":             {inFlight: 3, landed: 4, later: 2, finalized: final, sizes: []int{3, 4, 3, 3, 3}},
		"none is in flight":              {landed: 4, later: 2, finalized: final, sizes: []int{4}},
		"none may be final":              {inFlight: 1, later: 2, finalized: final, sizes: []int{1, 1, 1, 1}},
		"it is not known what is final":  {landed: 4, later: 2, sizes: []int{6}},
		"there are more than fit a call": {inFlight: 250, landed: 300, finalized: final, sizes: []int{250, 256, 44, 250, 250, 250}},
		"a slot is wrong":                {landed: 1, later: 2, wrong: 3, finalized: final, sizes: []int{4}},
		"no endpoint answers":            {inFlight: 3, landed: 4, finalized: final, fails: true, sizes: []int{3, 4, 3, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &statusCalls{}
			if test.fails {
				c.err = errors.New("down")
			}
			m := &Manager{Options: Options{
				Chain: c, Observer: noObserver{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming(),
				EstimateFinalized: func() uint64 { return test.finalized }, SlotDuration: func() time.Duration { return time.Second },
			}}
			m.tracker, m.recorder = newTracker(m), newRecorder(m)
			for range test.inFlight {
				id := uuid.New()
				m.tracker.entries[id] = &entry{
					j:     &Job{Lease: Lease{ID: id}, Live: []Attempt{{Signature: solana.Signature(append(id[:], make([]byte, 48)...)), CreatedAt: time.Now()}}},
					phase: tracking, rebroadcastAt: time.Now().Add(time.Hour),
				}
			}
			for i := range test.landed + test.later + test.wrong {
				id, slot := uuid.New(), uint64(final-finalityMargin)
				if i >= test.landed {
					slot++
				}
				if i >= test.landed+test.later {
					slot = 1_000_000
				}
				m.tracker.landed[id] = &landedEntry{Landed: Landed{Job: &Job{Lease: Lease{ID: id}}, Landing: Landing{Slot: slot}}}
			}
			for round := range finalityEvery {
				m.tracker.poll(t.Context(), round, false)
			}
			if diff := cmp.Diff(test.sizes, c.sizes); diff != "" {
				t.Errorf("signatures in each call (-want +got):\n%s", diff)
			}
			missed := 0
			for _, w := range m.tracker.landed {
				missed += w.missed
			}
			want := test.landed + test.wrong
			if test.finalized == 0 {
				want += test.later
			}
			if test.fails {
				want = 0
			}
			if missed != want {
				t.Errorf("%d landed jobs count as missed, want %d", missed, want)
			}
		})
	}
}
