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

// rootsKept is how many roots of earlier requests are remembered.
const rootsKept = 4096

// findRoot finds the root's position in the root history. If the tree account is not
// consistent, nothing is known, and the simulation before signing decides.
func (a *Admission) findRoot(ctx context.Context, root [32]byte) (rootWindow, error) {
	snap, err := a.State.Tree(ctx, treeMaxAge)
	if err != nil || !snap.Checked {
		return rootWindow{}, err
	}
	if a.isEvicted(root, &snap) {
		return rootWindow{}, submission.StaleRoot(root, a.Submissions.NewestRoot(root, snap.Tree))
	}
	snap, err = a.State.TreeWith(ctx, root, treeMaxAge)
	if err == nil && snap.Checked && snap.Tree.LeavesUntilEviction(root) < 0 {
		snap, err = a.awaitRoot(ctx, root, snap)
	}
	if err != nil || !snap.Checked {
		return rootWindow{}, err
	}
	newestSeq, oldestAge := snap.Tree.NextIndex, len(snap.Tree.History)-1
	seqAt := func(age int) uint64 { return newestSeq - min(uint64(age), newestSeq) } //nolint:gosec // LeavesUntilEviction is from 0 to oldestAge
	w := rootWindow{seq: seqAt(oldestAge - snap.Tree.LeavesUntilEviction(root)), oldest: seqAt(oldestAge), slot: snap.Slot, tree: snap.Tree, known: true}
	a.roots.Add(root, w.seq)
	return w, nil
}

// isEvicted reports whether a root that the tree lacks is known to be one of its older roots. Then no other tree has
// to be read.
func (a *Admission) isEvicted(root [32]byte, snap *onchain.Snapshot) bool {
	if !snap.Checked || snap.Doubtful || snap.Tree.LeavesUntilEviction(root) >= 0 {
		return false
	}
	kept, known := a.roots.Get(root)
	seq, _ := kept.(uint64)
	if recent, ok := a.Submissions.Leaves.Since(root); ok {
		seq, known = recent.FromIndex, true
	}
	return known && submission.Evicted(seq, snap.Tree)
}
