package txmgr_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// No relay runs at first, so every submission stays ahead of later ones.
func TestSubmissionIsRefusedIfTheQueueWouldEvictItsRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	old, _ := w.withdrawal(sol)
	alsoOld, _ := w.withdrawal(sol)
	w.deposit(10_000_000) // two leaves: the old root leaves the root history two leaves before the new one
	for range roomInQueue - 1 {
		req, _ := w.withdrawal(sol)
		w.submit(r, req)
	}
	late := w.submit(r, old) // no other submission has so old a root
	_, err := r.Submit(t.Context(), alsoOld)
	_ = wantCode(t, err, refusal.PoolBusy) // it would go before all others, of which one would be too late
	req, _ := w.withdrawal(sol)
	_, err = r.Submit(t.Context(), req)
	refused := wantCode(t, err, refusal.PoolBusy)
	if refused.RetryAfter <= 0 {
		t.Errorf("the refusal has RetryAfter %s, want it above zero", refused.RetryAfter)
	}
	newest, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	want := map[string]any{"current_root": hex.EncodeToString(newest.Tree.Root[:]), "next_index": newest.Tree.NextIndex}
	if diff := cmp.Diff(want, refused.Fields); diff != "" {
		t.Errorf("the refusal tells a client what to prove against (-want +got):\n%s", diff)
	}
	q, err := w.store.QueueByRoot(t.Context(), w.pool.Address, 0)
	must(t, err)
	if diff := cmp.Diff(q.Waiting[0], submission.AtRoot{Seq: late.RootSeq, Submissions: 1}); diff != "" {
		t.Errorf("the late one goes first (-got +want):\n%s", diff)
	}
	w.run(r)
	w.done(late.ID)
	w.eventually("the pool is no longer busy", func() bool {
		again, _ := w.withdrawal(sol)
		_, err := r.Submit(t.Context(), again)
		return err == nil
	})
}

func TestSubmissionWithTheOldestRootGoesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.assemble(parts{concurrency: 1})
	reqs := make([]submission.Request, 3)
	for i := range reqs {
		reqs[i], _ = w.withdrawal(sol)
		w.deposit(10_000_000)
	}
	ids := make([]uuid.UUID, 3)
	for _, i := range []int{1, 2, 0} { // the oldest root is submitted last
		ids[i] = w.submit(r, reqs[i]).ID
	}
	w.run(r)
	var landed []time.Time
	for _, id := range ids {
		s := w.done(id)
		if s.State != submission.Completed {
			t.Fatalf("a submission ended as %+v, want it completed", s)
		}
		landed = append(landed, *s.CompletedAt)
	}
	if !landed[0].Before(landed[1]) || !landed[1].Before(landed[2]) {
		t.Errorf("from the oldest root to the newest, the submissions landed at %v; want this order", landed)
	}
}

func TestRelayStaysWithinItsConcurrency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.assemble(parts{concurrency: 2})
	w.run(r)
	var ids []uuid.UUID
	for range 8 {
		req, _ := w.withdrawal(sol)
		ids = append(ids, w.submit(r, req).ID)
		if inFlight, _ := r.InProgress(); inFlight > 2 {
			t.Fatalf("%d submissions are in flight, want at most 2", inFlight)
		}
	}
	for _, id := range ids {
		if s := w.done(id); s.State != submission.Completed {
			t.Errorf("a submission ended as %+v, want it completed", s)
		}
	}
	w.eventually("all are finalized", func() bool {
		inFlight, landed := r.InProgress()
		return inFlight == 0 && landed == 0
	})
}
