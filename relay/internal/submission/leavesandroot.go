package submission

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// leavesTimeout is how long landed submissions wait for their leaf indices and the tree's root,
// so that responses can contain them.
const leavesTimeout = time.Second

// finalityTreeAge is the maximum age of the tree account whose root a finalized submission gets.
const finalityTreeAge = time.Minute

// addLeavesAndRoot adds leaf indices and root to the landings of completed submissions, and the
// timeout to the landings of swaps. Leaf indices and root are only a convenience for clients. If
// the commitment index or the chain does not answer, the outcome is written without them.
func (h *Handler) addLeavesAndRoot(ctx context.Context, landed []txmgr.Landed, landings []Landing) {
	ctx, cancel := context.WithTimeout(ctx, leavesTimeout)
	defer cancel()
	var wanted [][32]byte
	var slots []uint64
	for _, l := range landed {
		wanted, slots = append(wanted, commitmentsOf(FromJob(l.Job))...), append(slots, l.Slot)
	}
	found, err := h.Leaves.FindLanded(ctx, slots, wanted)
	if err != nil {
		h.Log.DebugContext(ctx, "submissions completed before the index had read their blocks", "error", err)
	}
	snap, err := h.State.Tree(ctx, h.Timing.Poll)
	for i, l := range landed {
		landings[i].LeafIndices = indicesOf(commitmentsOf(FromJob(l.Job)), found)
		if err == nil {
			landings[i].Root = &snap.Tree.Root
		}
		if l.Kind == shieldpool.KindSwap {
			landings[i].Timeout = l.Slot + h.Pool.Profile.SwapTimeout
		}
	}
}

// commitmentsOf returns the commitments that a submission appends to the tree.
func commitmentsOf(s *Submission) [][32]byte {
	if s.Kind == KindSwapExecution {
		return nil
	}
	return s.Call.Inputs.Leaves()
}

// indicesOf returns the indices of the commitments; nil if any of the indices is missing.
func indicesOf(commitments [][32]byte, found map[[32]byte]uint64) []uint64 {
	var out []uint64
	for _, c := range commitments {
		i, ok := found[c]
		if !ok {
			return nil
		}
		out = append(out, i)
	}
	return out
}

// addAtFinality adds leaf indices and root to finalized submissions, in case the commitment index
// or the chain did not answer when they landed. The store does not replace a root that it already
// has.
func (h *Handler) addAtFinality(ctx context.Context, landed []txmgr.Landed, landings []Landing) {
	var wanted [][32]byte
	for _, l := range landed {
		wanted = append(wanted, commitmentsOf(FromJob(l.Job))...)
	}
	if len(wanted) == 0 {
		return
	}
	found, err := h.Leaves.Find(ctx, wanted)
	if err != nil {
		h.Log.DebugContext(ctx, "submissions finalized without leaf indices", "error", err)
	}
	ctx, cancel := context.WithTimeout(ctx, leavesTimeout)
	defer cancel()
	snap, treeErr := h.State.Tree(ctx, finalityTreeAge)
	for i, l := range landed {
		if l.Kind == KindSwapExecution {
			continue
		}
		landings[i].LeafIndices = indicesOf(commitmentsOf(FromJob(l.Job)), found)
		if treeErr == nil {
			landings[i].Root = &snap.Tree.Root
		}
	}
}
