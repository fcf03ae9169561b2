package txmgr

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// searchCounter counts searches, and reports every signature as confirmed.
type searchCounter struct {
	Chain
	searches atomic.Int64
}

func (a *searchCounter) Search(_ context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	a.searches.Add(1)
	result := onchain.SearchResult{Statuses: make([]*onchain.Status, len(signatures))}
	for i := range result.Statuses {
		result.Statuses[i] = &onchain.Status{Slot: 1, Confirmation: onchain.Confirmed}
	}
	return result, nil
}

// TestALandingIsSearchedAfterSeveralMissedPolls: lagging nodes miss a landing now and then, which
// proves nothing.
func TestALandingIsSearchedAfterSeveralMissedPolls(t *testing.T) {
	t.Parallel()
	seen := &onchain.Status{Slot: 1, Confirmation: onchain.Confirmed}
	nodes := &searchCounter{}
	e := &Manager{Options: Options{Chain: nodes, Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming()}}
	e.stopping, e.stop = context.WithCancel(t.Context())
	e.tracker, e.recorder = newTracker(e), newRecorder(e)
	w := &landedEntry{Landed: Landed{Job: &Job{Lease: Lease{ID: uuid.New(), Epoch: 1}}, Landing: Landing{Slot: 1}}}
	e.tracker.landed[w.ID] = w
	poll := func(times int, status *onchain.Status) int64 {
		for range times {
			e.tracker.applyLandedStatuses(t.Context(), []*landedEntry{w}, []*onchain.Status{status})
			e.steps.Wait()
		}
		return nodes.searches.Load()
	}
	for range 3 {
		if n := poll(missesUntilSearch-1, nil); n != 0 {
			t.Fatalf("all history was searched after %d missed polls in a row, want a search after %d", missesUntilSearch-1, missesUntilSearch)
		}
		poll(1, seen)
	}
	if n := poll(missesUntilSearch, nil); n != 1 {
		t.Errorf("all history was searched %d times after %d missed polls in a row, want once", n, missesUntilSearch)
	}
}

// A search that finds a landing in another slot writes that slot, which the race detector watches.
func TestALandingThatIsSearchedIsNotRead(t *testing.T) {
	t.Parallel()
	e := &Manager{Options: Options{EstimateFinalized: func() uint64 { return 100 }}}
	e.tracker = newTracker(e)
	busy, idle := &landedEntry{busy: true}, &landedEntry{}
	e.tracker.landed[uuid.New()], e.tracker.landed[uuid.New()] = busy, idle
	ended := make(chan struct{})
	go func() { defer close(ended); busy.Slot = 2 }()
	if got := e.tracker.perhapsFinal(); len(got) != 1 || got[0] != idle {
		t.Errorf("%d landings are polled, want the one that is not searched", len(got))
	}
	<-ended
}

// TestLandingIsNotRolledBackByOneEndpoint: a landing is rolled back when two endpoints, or the only one that
// is configured, no longer have it although their history reaches back to its slot.
func TestLandingIsNotRolledBackByOneEndpoint(t *testing.T) {
	t.Parallel()
	const slot = 10
	two := onchain.SearchResult{Slot: 20, FinalizedHeight: 9, FirstAvailable: 1}
	failed := &shieldpool.TransactionError{}
	tests := map[string]struct {
		result onchain.SearchResult
		st     *onchain.Status
		want   bool
	}{
		"two endpoints do not have it":          {two, nil, true},
		"one alone does not have it":            {onchain.SearchResult{Slot: 20, FirstAvailable: 1}, nil, false},
		"their history is too short":            {onchain.SearchResult{Slot: 20, FinalizedHeight: 9, FirstAvailable: 11}, nil, false},
		"they have not reached its slot":        {onchain.SearchResult{Slot: 9, FinalizedHeight: 9, FirstAvailable: 1}, nil, false},
		"it is final":                           {two, &onchain.Status{Slot: slot, Confirmation: onchain.Finalized}, true},
		"it is still confirmed":                 {two, &onchain.Status{Slot: slot, Confirmation: onchain.Confirmed}, false},
		"it failed on another fork":             {two, &onchain.Status{Slot: slot, Confirmation: onchain.Finalized, Err: failed}, true},
		"it failed on a fork that may die":      {two, &onchain.Status{Slot: slot, Confirmation: onchain.Confirmed, Err: failed}, false},
		"one alone says that it failed finally": {two, &onchain.Status{Slot: slot, Confirmation: onchain.Finalized, Err: failed, Unverified: true}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isConclusive(test.result, test.st, slot); got != test.want {
				t.Errorf("the search is conclusive: %v, want %v", got, test.want)
			}
		})
	}
}

// acceptingOutcomes accepts every landing.
type acceptingOutcomes struct{ Outcomes }

func (acceptingOutcomes) Complete(context.Context, []Landed) ([]Lease, error) { return nil, nil }
func (acceptingOutcomes) TrimRow(r Row) Row                                   { return r }

// TestALandingMarksThePayerAsWorking: only the payer of the landed attempt is marked; the payers of
// the job's other attempts may still be refused by the chain.
func TestALandingMarksThePayerAsWorking(t *testing.T) {
	t.Parallel()
	payers, empty, paid := &fakePayer{}, solana.PublicKey{1}, solana.PublicKey{2}
	e := &Manager{Options: Options{
		Outcomes: acceptingOutcomes{}, Payers: payers, Observer: noObserver{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming(),
	}}
	e.tracker, e.recorder = newTracker(e), newRecorder(e)
	c := &Job{Lease: Lease{ID: uuid.New()}, queue: new(Queue), Live: []Attempt{
		{Signature: solana.Signature{1}, FeePayer: empty}, {Signature: solana.Signature{2}, FeePayer: paid},
	}}
	w, _ := e.tracker.add(c)
	if !e.recorder.writeLandingBatch(t.Context(), []*queuedLanding{{entry: w, landing: Landing{Signature: solana.Signature{2}}}}) {
		t.Fatal("the landing is not accepted")
	}
	if diff := cmp.Diff([]solana.PublicKey{paid}, payers.working); diff != "" {
		t.Errorf("payers marked as working (-want +got):\n%s", diff)
	}
}

// TestLandedEntryRecordsWhetherTheLandingIsOurs: the pinned encoding of A, and the rent that a swap's
// execution returns, depend on Ours.
func TestLandedEntryRecordsWhetherTheLandingIsOurs(t *testing.T) {
	t.Parallel()
	own, foreign := solana.Signature{2}, solana.Signature{3}
	live := []Attempt{{Signature: own, Purpose: PurposeExecute}}
	for name, test := range map[string]struct {
		landing Landing
		want    Landing
	}{
		"an attempt of the job, of which only the signature is given": {Landing{Signature: own}, Landing{Signature: own, Purpose: PurposeExecute, Ours: true}},
		"a stranger's transaction":                                    {Landing{Signature: foreign, Purpose: PurposeExecute}, Landing{Signature: foreign, Purpose: PurposeExecute}},
	} {
		m := &Manager{Options: Options{Outcomes: acceptingOutcomes{}}}
		got := newTracker(m).newLandedEntry(Landed{Job: &Job{Live: live}, Landing: test.landing})
		if got.Landing != test.want || len(got.Live) != 0 {
			t.Errorf("%s: the entry has the landing %+v and %d attempts, want %+v and none", name, got.Landing, len(got.Live), test.want)
		}
	}
}
