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

// archive counts searches, and knows everything as confirmed.
type archive struct {
	Chain
	searches atomic.Int64
}

func (a *archive) Search(_ context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	a.searches.Add(1)
	look := onchain.SearchResult{Statuses: make([]*onchain.Status, len(signatures))}
	for i := range look.Statuses {
		look.Statuses[i] = &onchain.Status{Slot: 1, Confirmation: onchain.Confirmed}
	}
	return look, nil
}

// TestALandingIsSearchedAfterSeveralMissedPolls: lagging nodes miss one now and then, for as long as
// it is watched, and that means nothing.
func TestALandingIsSearchedAfterSeveralMissedPolls(t *testing.T) {
	t.Parallel()
	seen := &onchain.Status{Slot: 1, Confirmation: onchain.Confirmed}
	nodes := &archive{}
	e := &Manager{Options: Options{Chain: nodes, Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming()}}
	e.stopping, e.stop = context.WithCancel(t.Context())
	e.tracker, e.recorder = newTracker(e), newRecorder(e)
	w := &landedEntry{Landed: Landed{Job: &Job{Lease: Lease{ID: uuid.New(), Epoch: 1}}, Landing: Landing{Slot: 1}}}
	e.tracker.landed[w.ID] = w
	look := func(times int, status *onchain.Status) int64 {
		for range times {
			e.tracker.applyLandedStatuses(t.Context(), []*landedEntry{w}, []*onchain.Status{status})
			e.steps.Wait()
		}
		return nodes.searches.Load()
	}
	for range 3 {
		if n := look(missesUntilSearch-1, nil); n != 0 {
			t.Fatalf("it is looked for in all history after %d looks in a row without it, want %d", missesUntilSearch-1, missesUntilSearch)
		}
		look(1, seen)
	}
	if n := look(missesUntilSearch, nil); n != 1 {
		t.Errorf("it is looked for in all history %d times after %d looks in a row without it, want once", n, missesUntilSearch)
	}
}

// TestOneEndpointUndoesNoLanding: a landing is undone when two endpoints, or the only one that
// is configured, no longer have it in a history that reaches back to it.
func TestOneEndpointUndoesNoLanding(t *testing.T) {
	t.Parallel()
	const slot = 10
	two := onchain.SearchResult{Slot: 20, FinalizedHeight: 9, FirstAvailable: 1}
	failed := &shieldpool.TransactionError{}
	tests := map[string]struct {
		look onchain.SearchResult
		st   *onchain.Status
		want bool
	}{
		"two do not have it":                     {two, nil, true},
		"one alone does not have it":             {onchain.SearchResult{Slot: 20, FirstAvailable: 1}, nil, false},
		"their history is too short":             {onchain.SearchResult{Slot: 20, FinalizedHeight: 9, FirstAvailable: 11}, nil, false},
		"they have not reached its slot":         {onchain.SearchResult{Slot: 9, FinalizedHeight: 9, FirstAvailable: 1}, nil, false},
		"it is final":                            {two, &onchain.Status{Slot: slot, Confirmation: onchain.Finalized}, true},
		"it is still confirmed":                  {two, &onchain.Status{Slot: slot, Confirmation: onchain.Confirmed}, false},
		"it failed on another fork":              {two, &onchain.Status{Slot: slot, Confirmation: onchain.Finalized, Err: failed}, true},
		"it failed on one that may die":          {two, &onchain.Status{Slot: slot, Confirmation: onchain.Confirmed, Err: failed}, false},
		"one alone says that it failed for good": {two, &onchain.Status{Slot: slot, Confirmation: onchain.Finalized, Err: failed, Unverified: true}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isConclusive(test.look, test.st, slot); got != test.want {
				t.Errorf("the search says enough: %v, want %v", got, test.want)
			}
		})
	}
}

// written takes every landing.
type written struct{ Outcomes }

func (written) Complete(context.Context, []Landed) ([]Lease, error) { return nil, nil }
func (written) TrimRow(r Row) Row                                   { return r }

// TestALandingMarksThePayerAsWorking: the payers of a job's other attempts may well be refused by the
// chain.
func TestALandingMarksThePayerAsWorking(t *testing.T) {
	t.Parallel()
	payers, dry, paid := &till{}, solana.PublicKey{1}, solana.PublicKey{2}
	e := &Manager{Options: Options{
		Outcomes: written{}, Payers: payers, Observer: quiet{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming(),
	}}
	e.tracker, e.recorder = newTracker(e), newRecorder(e)
	c := &Job{Lease: Lease{ID: uuid.New()}, lane: new(Lane), Live: []Attempt{
		{Signature: solana.Signature{1}, FeePayer: dry}, {Signature: solana.Signature{2}, FeePayer: paid},
	}}
	w, _ := e.tracker.add(c)
	if !e.recorder.writeCompleted(t.Context(), []*landing{{w: w, l: Landing{Signature: solana.Signature{2}}}}) {
		t.Fatal("the landing is not written")
	}
	if diff := cmp.Diff([]solana.PublicKey{paid}, payers.worked); diff != "" {
		t.Errorf("payers that worked (-want +got):\n%s", diff)
	}
}

// TestALandedEntryKnowsWhetherTheLandingIsOurs: the pin of a proof's sign, and the rent that a swap's execution
// returns, depend on it.
func TestALandedEntryKnowsWhetherTheLandingIsOurs(t *testing.T) {
	t.Parallel()
	ours, strangers := solana.Signature{2}, solana.Signature{3}
	live := []Attempt{{Signature: ours, Purpose: PurposeExecute}}
	for name, test := range map[string]struct {
		landing Landing
		want    Landing
	}{
		"our attempt, known by its signature alone": {Landing{Signature: ours}, Landing{Signature: ours, Purpose: PurposeExecute, Ours: true}},
		"a stranger's transaction":                  {Landing{Signature: strangers, Purpose: PurposeExecute}, Landing{Signature: strangers, Purpose: PurposeExecute}},
	} {
		m := &Manager{Options: Options{Outcomes: written{}}}
		got := newTracker(m).newLandedEntry(Landed{Job: &Job{Live: live}, Landing: test.landing})
		if got.Landing != test.want || len(got.Live) != 0 {
			t.Errorf("%s: the watch keeps %+v and %d attempts, want %+v and none", name, got.Landing, len(got.Live), test.want)
		}
	}
}
