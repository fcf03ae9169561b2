package txmgr_test

import (
	"context"
	"fmt"
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

// evictedRoot is an index that has read so many leaves, and evicts a root.
type evictedRoot struct {
	noLeaves
	root [32]byte
	next uint64
}

func (e evictedRoot) Evicted(root [32]byte, _ int) (commitments.Recent, bool) {
	return commitments.Recent{Root: [32]byte{8}, NextIndex: e.next}, root == e.root
}

// cachedState returns its tree, and counts the reads of another one.
type cachedState struct {
	submission.PoolState
	tree  onchain.Snapshot
	with  func(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error)
	reads atomic.Int64
}

func (s *cachedState) Tree(context.Context, time.Duration) (onchain.Snapshot, error) {
	return s.tree, nil
}

func (s *cachedState) TreeWith(ctx context.Context, root [32]byte, maxAge time.Duration) (onchain.Snapshot, error) {
	s.reads.Add(1)
	return s.with(ctx, root, maxAge)
}

// What an endpoint shows now evicts no root: another one may have it. What the index has read does.
func TestARootIsRefusedAtOnceIfTheIndexEvictsIt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		newer   bool   // an endpoint shows a tree that does not have the root
		evicted bool   // by the index
		behind  uint64 // the number of leaves that the index lacks, of those in that tree
		want    refusal.Code
		reads   int64 // one for the transaction of an accepted request
	}{
		"the tree has the root":                                    {evicted: true, reads: 1},
		"the index evicts it":                                      {newer: true, evicted: true, want: refusal.RootNotFound},
		"the index names a root that the tree still has":           {newer: true, evicted: true, behind: 99, want: refusal.RootNotFound},
		"the index names a root that is evicted, another has this": {newer: true, evicted: true, behind: 100, reads: 2},
		"the index does not evict it, another has it":              {newer: true, reads: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, err := w.state.Tree(t.Context(), 0)
			must(t, err)
			if len(first.Tree.History) != 100 {
				t.Fatalf("the root history has %d roots, want 100", len(first.Tree.History))
			}
			state := &cachedState{PoolState: w.state, tree: first, with: w.state.TreeWith}
			if test.newer {
				tree := *first.Tree
				tree.Root, tree.NextIndex, tree.History = [32]byte{9}, tree.NextIndex+100, make([][32]byte, 100)
				state.tree.Tree = &tree
			}
			if test.evicted {
				w.leaves = evictedRoot{root: first.Tree.Root, next: state.tree.Tree.NextIndex - test.behind}
			}
			req, _ := w.withdrawal(sol)
			_, err = w.assemble(parts{state: state}).Submit(t.Context(), req)
			if test.want == "" {
				must(t, err)
			} else if refused := wantCode(t, err, test.want); refused.Fields["current_root"] != fmt.Sprintf("%x", [32]byte{8}) {
				t.Errorf("the refusal names the root %v, want the index's", refused.Fields["current_root"])
			}
			if n := state.reads.Load(); n != test.reads {
				t.Errorf("another tree was read %d times, want %d", n, test.reads)
			}
		})
	}
}

// Of a tree that is not consistent nothing is known, so the simulation decides.
func TestATreeThatIsNotConsistentRefusesNoRoot(t *testing.T) {
	t.Parallel()
	for name, consistent := range map[string]int64{"at the first look for the root": 0, "at the second": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old, err := w.state.Tree(t.Context(), 0)
			must(t, err)
			w.deposit(10_000_000)
			now, err := w.state.Tree(t.Context(), 0)
			must(t, err)
			must(t, w.store.RecordTreeSlot(t.Context(), w.pool.Address, now.Slot))
			state := &cachedState{PoolState: w.state, tree: old}
			state.with = func(context.Context, [32]byte, time.Duration) (onchain.Snapshot, error) {
				snap := old
				snap.Checked = state.reads.Load() <= consistent
				return snap, nil
			}
			req, _ := w.withdrawal(sol)
			_, err = w.assemble(parts{state: state}).Submit(t.Context(), req)
			must(t, err)
			if n := state.reads.Load(); n != consistent+2 { // one for the transaction
				t.Errorf("the tree was read %d times, want %d", n, consistent+2)
			}
		})
	}
}
