package txmgr_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// treesAroundADeposit returns the trees before and after a deposit, which another process has observed.
func treesAroundADeposit(w *world) (before, after onchain.Snapshot) {
	w.t.Helper()
	ctx := w.t.Context()
	before, err := w.state.Tree(ctx, 0)
	must(w.t, err)
	w.deposit(10_000_000)
	after, err = w.state.Tree(ctx, 0)
	must(w.t, err)
	must(w.t, w.store.RecordTreeSlot(ctx, w.pool.Address, after.Slot))
	return before, after
}

// A node that is not behind, but was asked before another process observed a newer tree, is asked again.
func TestARootThatTheTreeLacksIsLookedForInANewerOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, now := treesAroundADeposit(w)
	submit := func(root [32]byte) error {
		to := w.newKey().PublicKey()
		in := w.inputs(-sol, to)
		in.Root = root
		state := &laterState{PoolState: w.state, old: old}
		state.reads.Store(1)
		_, err := w.assemble(parts{state: state}).Submit(t.Context(), submission.Request{Proof: w.prove(in), PublicInputs: in.Bytes(), Recipient: to.String()})
		return err
	}
	if err := submit(now.Tree.Root); err != nil {
		t.Errorf("a root of the newer tree is refused: %v", err)
	}
	if refused := wantCode(t, submit([32]byte{31: 9}), refusal.RootNotFound); refused.Fields["next_index"] != now.Tree.NextIndex {
		t.Errorf("a root that the newer tree lacks too is refused with %v, want the newer tree's %d leaves", refused.Fields, now.Tree.NextIndex)
	}
}

// uncheckedState returns an old tree, which is consistent for some reads.
type uncheckedState struct {
	submission.PoolState
	old   onchain.Snapshot
	after int64
	reads atomic.Int64
}

func (s *uncheckedState) TreeWith(context.Context, [32]byte, time.Duration) (onchain.Snapshot, error) {
	snap := s.old
	snap.Checked = s.reads.Add(1) <= s.after
	return snap, nil
}

// Of a tree that is not consistent nothing is known, so the simulation decides.
func TestATreeThatIsNotConsistentRefusesNoRoot(t *testing.T) {
	t.Parallel()
	for name, consistent := range map[string]int64{"at the first look for the root": 0, "at the second": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old, _ := treesAroundADeposit(w)
			state := &uncheckedState{PoolState: w.state, old: old, after: consistent}
			req, _ := w.withdrawal(sol)
			_, err := w.assemble(parts{state: state}).Submit(t.Context(), req)
			must(t, err)
		})
	}
}
