package txmgr_test

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// A node that is stuck never has a newer root. The other relays know that the node is behind, so
// a final root_not_found would be wrong.
func TestStuckNodeFailsNoSubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	w.deposit(10_000_000)
	req, _ := w.withdrawal(sol)
	id := w.submit(w.relay(nil), req).ID
	now, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	must(t, w.store.RecordTreeSlot(t.Context(), w.pool.Address, now.Slot))
	still := &staleState{PoolState: w.state}
	still.old.Store(&old)
	r := w.assemble(parts{state: still})
	w.run(r)
	w.eventually("the submission was tried more than 12 times", func() bool { s := w.get(id); return s.Tries > 12 || s.Done() })
	still.old.Store(nil)
	if s := w.done(id); s.State != submission.Completed {
		t.Errorf("the submission ended as %+v, failure %v; want it completed", s, s.Failure)
	}
}

// A relay may start while one endpoint claims to be ahead and no other endpoint has contradicted it
// yet. A root that is missing from this endpoint's tree is then not reported as stale.
func TestRootMissingFromDoubtfulTreeIsNotStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	w.deposit(10_000_000)
	req, _ := w.withdrawal(sol)
	doubtful := old
	doubtful.Doubtful = true
	still := &staleState{PoolState: w.state}
	r := w.assemble(parts{state: still})
	still.old.Store(&doubtful)
	_, err = r.Submit(t.Context(), req)
	_ = wantCode(t, err, refusal.ChainUnavailable)
	still.old.Store(&old)
	_, err = r.Submit(t.Context(), req)
	_ = wantCode(t, err, refusal.RootNotFound)
}
