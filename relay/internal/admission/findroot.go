package admission

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// treeMaxAge is the maximum age of a tree account whose root history contains the proof's
// root. If the root history does not contain the root, the tree account is read anew.
const treeMaxAge = 400 * time.Millisecond

// rootWindow is the position of a submission's root in the root history.
type rootWindow struct {
	// seq is the number of leaves that the tree had when the root was the tree's newest root.
	seq uint64
	// oldest is the seq of the oldest root in the root history.
	oldest uint64
	// tree is the tree account at slot.
	tree *shieldpool.TreeAccount
	slot uint64
	// known is false when the tree account is not consistent; the other fields are then zero.
	known bool
}

// findRoot finds the root's position in the root history. If the tree account is not
// consistent, nothing is known, and the simulation before signing decides.
func (a *Admission) findRoot(ctx context.Context, root [32]byte) (rootWindow, error) {
	snap, err := a.State.TreeWith(ctx, root, treeMaxAge)
	if err == nil && lacks(&snap, root) {
		snap, err = a.awaitRoot(ctx, root, snap)
	}
	if err != nil || !snap.Checked {
		return rootWindow{}, err
	}
	untilEviction := snap.Tree.LeavesUntilEviction(root)
	newestSeq, oldestAge := snap.Tree.NextIndex, len(snap.Tree.History)-1
	seqAt := func(age int) uint64 { return newestSeq - min(uint64(age), newestSeq) } //nolint:gosec // untilEviction is at most oldestAge
	return rootWindow{seq: seqAt(oldestAge - untilEviction), oldest: seqAt(oldestAge), slot: snap.Slot, tree: snap.Tree, known: true}, nil
}

// lacks reports whether a consistent tree does not contain the root.
func lacks(snap *onchain.Snapshot, root [32]byte) bool {
	return snap.Checked && snap.Tree.LeavesUntilEviction(root) < 0
}
