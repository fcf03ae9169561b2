package admission

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
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
	snap, err := a.State.Tree(ctx, treeMaxAge)
	if err == nil && lacks(&snap, root) {
		snap, err = a.findTree(ctx, root, snap.Tree)
	}
	if err != nil || !snap.Checked {
		return rootWindow{}, err
	}
	newestSeq, oldestAge := snap.Tree.NextIndex, len(snap.Tree.History)-1
	seqAt := func(age int) uint64 { return newestSeq - min(uint64(age), newestSeq) } //nolint:gosec // LeavesUntilEviction is from 0 to oldestAge
	return rootWindow{seq: seqAt(oldestAge - snap.Tree.LeavesUntilEviction(root)), oldest: seqAt(oldestAge), slot: snap.Slot, tree: snap.Tree, known: true}, nil
}

// lacks reports whether a consistent tree does not contain the root.
func lacks(snap *onchain.Snapshot, root [32]byte) bool {
	return snap.Checked && snap.Tree.LeavesUntilEviction(root) < 0
}

// findTree finds a tree that contains a root which this one lacks, or refuses the root. If the index has read so much
// further that the root was evicted, no endpoint is asked, unless an index that is behind would name a root that
// is evicted too.
func (a *Admission) findTree(ctx context.Context, root [32]byte, tree *shieldpool.TreeAccount) (onchain.Snapshot, error) {
	history := len(tree.History)
	if newest, ok := a.Submissions.Leaves.Evicted(root, history); ok && newest.NextIndex+uint64(history) > tree.NextIndex {
		return onchain.Snapshot{}, submission.StaleRoot(root, newest)
	}
	snap, err := a.State.TreeWith(ctx, root, treeMaxAge)
	if err == nil && lacks(&snap, root) {
		return a.awaitRoot(ctx, root, snap)
	}
	return snap, err
}
