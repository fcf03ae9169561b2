package txmgr_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// A node that is not behind, but was asked before another process observed a newer tree, is asked again.
func TestARootThatTheTreeLacksIsLookedForInANewerOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	w.deposit(10_000_000)
	now, err := w.state.Tree(t.Context(), 0)
	must(t, err)
	must(t, w.store.RecordTreeSlot(t.Context(), w.pool.Address, now.Slot))
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

// knownLeaves is an index that knows how many leaves the tree had at each of these roots.
type knownLeaves struct {
	noLeaves
	from map[[32]byte]uint64
}

func (k knownLeaves) Since(root [32]byte) (commitments.Recent, bool) {
	from, ok := k.from[root]
	return commitments.Recent{FromIndex: from}, ok
}

// cachedState returns its tree, and counts the reads of another one.
type cachedState struct {
	submission.PoolState
	tree  atomic.Pointer[onchain.Snapshot]
	reads atomic.Int64
}

func (s *cachedState) Tree(context.Context, time.Duration) (onchain.Snapshot, error) {
	return *s.tree.Load(), nil
}

func (s *cachedState) TreeWith(ctx context.Context, _ [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	s.reads.Add(1)
	return s.Tree(ctx, maxAge)
}

func TestAnEvictedRootIsRefusedWithoutReadingTheChain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		doubtful, submitted bool  // the newer tree is doubtful; a request with the root was accepted before
		indexed             int64 // leaves before those of the root that the index knows; -1 if it knows none
		want                refusal.Code
		reads               int64
	}{
		"another request had the root":         {submitted: true, indexed: -1, want: refusal.RootNotFound},
		"the index knows the root":             {indexed: 0, want: refusal.RootNotFound},
		"nobody knows the root":                {indexed: -1, want: refusal.RootNotFound, reads: 1},
		"the tree is doubtful":                 {doubtful: true, submitted: true, indexed: -1, want: refusal.ChainUnavailable, reads: 1},
		"the root is newer than those evicted": {indexed: 1, want: refusal.RootNotFound, reads: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, err := w.state.Tree(t.Context(), 0)
			must(t, err)
			state := &cachedState{PoolState: w.state}
			state.tree.Store(&first)
			known := knownLeaves{from: map[[32]byte]uint64{}}
			if test.indexed >= 0 {
				known.from[first.Tree.Root] = first.Tree.NextIndex + uint64(test.indexed)
			}
			w.leaves = known
			r := w.assemble(parts{state: state})
			if test.submitted {
				req, _ := w.withdrawal(sol)
				w.submit(r, req)
			}
			later, tree := first, *first.Tree
			later.Tree, later.Doubtful = &tree, test.doubtful
			tree.Root, tree.NextIndex, tree.History = [32]byte{9}, tree.NextIndex+uint64(len(tree.History)), make([][32]byte, len(tree.History))
			state.tree.Store(&later)
			before := state.reads.Load()
			req, _ := w.withdrawal(sol)
			_, err = r.Submit(t.Context(), req)
			_ = wantCode(t, err, test.want)
			if n := state.reads.Load() - before; n != test.reads {
				t.Errorf("another tree was read %d times, want %d", n, test.reads)
			}
		})
	}
}
