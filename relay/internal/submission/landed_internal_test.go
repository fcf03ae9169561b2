package submission

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// archive counts searches, and knows everything as confirmed.
type archive struct {
	Chain
	searches atomic.Int64
}

func (a *archive) Search(_ context.Context, signatures []solana.Signature) (ledger.Look, error) {
	a.searches.Add(1)
	look := ledger.Look{Statuses: make([]*ledger.Status, len(signatures))}
	for i := range look.Statuses {
		look.Statuses[i] = &ledger.Status{Slot: 1, Confirmation: ledger.Confirmed}
	}
	return look, nil
}

// TestALandingIsDoubtedByLooksInARowThatMissIt: nodes that lag miss one now and
// then, for as long as it is watched, and mean nothing by it.
func TestALandingIsDoubtedByLooksInARowThatMissIt(t *testing.T) {
	t.Parallel()
	seen := &ledger.Status{Slot: 1, Confirmation: ledger.Confirmed}
	nodes := &archive{}
	e := &Engine{EngineOptions: EngineOptions{Chain: nodes, Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming()}}
	e.stopping, e.stop = context.WithCancel(t.Context())
	e.tracker, e.recorder = newTracker(e), newRecorder(e)
	w := &landedEntry{lease: Lease{ID: uuid.New(), Epoch: 1}, slot: 1}
	e.tracker.landed[w.lease.ID] = w
	look := func(times int, status *ledger.Status) int64 {
		for range times {
			e.tracker.applyLandedStatuses(t.Context(), []*landedEntry{w}, []*ledger.Status{status})
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

// written takes every landing.
type written struct{ Store }

func (written) Complete(context.Context, []Landing) ([]Lease, error) { return nil, nil }

// TestThePayerOfWhatLandedWorks: of several attempts the others' payers may well be
// those that the chain refuses.
func TestThePayerOfWhatLandedWorks(t *testing.T) {
	t.Parallel()
	payers, dry, paid := &till{}, solana.PublicKey{1}, solana.PublicKey{2}
	e := &Engine{EngineOptions: EngineOptions{
		Store: written{}, Payers: payers, Observer: quiet{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: DefaultTiming(),
	}}
	e.tracker, e.recorder = newTracker(e), newRecorder(e)
	c := &Claimed{Submission: &Submission{ID: uuid.New(), Kind: KindSwapExecution}, Live: []Attempt{
		{Signature: solana.Signature{1}, FeePayer: dry}, {Signature: solana.Signature{2}, FeePayer: paid},
	}}
	w, _ := e.tracker.add(c)
	if !e.recorder.writeCompleted(t.Context(), []*landing{{w: w, o: Outcome{Signature: solana.Signature{2}}}}) {
		t.Fatal("the landing is not written")
	}
	if diff := cmp.Diff([]solana.PublicKey{paid}, payers.worked); diff != "" {
		t.Errorf("payers that worked (-want +got):\n%s", diff)
	}
}

// finished is a database in which everything is done.
type finished struct{ Store }

func (finished) Get(_ context.Context, id uuid.UUID) (*Submission, error) {
	return &Submission{ID: id, State: Completed}, nil
}

// TestNobodyWaitsWhoHasGone: the desk would count, and tell, whoever came for ever.
func TestNobodyWaitsWhoHasGone(t *testing.T) {
	t.Parallel()
	d, err := NewReader(finished{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := d.Wait(gone, uuid.New()); err != nil {
		t.Fatal(err)
	}
	if n := d.Waiting(); n != 0 || len(d.waiting) != 0 {
		t.Errorf("%d wait for %d submissions after the only one has gone, want none", n, len(d.waiting))
	}
}
