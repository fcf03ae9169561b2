package submission

import (
	"context"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// leavesTimeout is how long landed submissions wait for the index to read their block, and
// for the tree's root, so that responses can contain both.
const leavesTimeout = time.Second

// finalityTreeAge is the greatest age of a tree whose root a submission gets at finality.
const finalityTreeAge = time.Minute

// Complete implements txmgr.Outcomes. The landings of one call are all first legs, or all
// second legs.
func (h *Handler) Complete(ctx context.Context, landed []txmgr.Landed) (lost []txmgr.Lease, err error) {
	landings := make([]Landing, len(landed))
	for i, l := range landed {
		landings[i] = Landing{Lease: l.Lease, Outcome: Outcome{Signature: l.Signature, Slot: l.Slot, Phase: endPhase(l.Purpose)}}
	}
	if len(landed) > 0 && landed[0].Kind != KindSwapExecution { // second legs add no leaves
		h.addLeavesAndRoot(ctx, landed, landings)
	}
	// A hanging database must not prevent the next try.
	ctx, cancel := context.WithTimeout(ctx, h.Timing.Lease)
	defer cancel()
	if lost, err = h.Store.Complete(ctx, landings); err != nil {
		return nil, err
	}
	for i, l := range landed {
		if !slices.Contains(lost, l.Lease) {
			h.reportCompleted(ctx, FromJob(l.Job), &landings[i].Outcome)
		}
	}
	return lost, nil
}

// addLeavesAndRoot adds leaf indices and root, which are only a convenience for clients: an
// index or a chain that does not answer must not delay the outcome.
func (h *Handler) addLeavesAndRoot(ctx context.Context, landed []txmgr.Landed, landings []Landing) {
	ctx, cancel := context.WithTimeout(ctx, leavesTimeout)
	defer cancel()
	var wanted [][32]byte
	for _, l := range landed {
		wanted = append(wanted, commitmentsOf(FromJob(l.Job))...)
	}
	if err := h.Leaves.Sync(ctx); err != nil {
		h.Log.DebugContext(ctx, "submissions completed before the index had read their blocks", "error", err)
	}
	found, err := h.Leaves.Find(ctx, wanted)
	if err != nil {
		h.Log.DebugContext(ctx, "submissions completed without leaf indices", "error", err)
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

// commitmentsOf returns the leaves that a submission adds.
func commitmentsOf(s *Submission) [][32]byte {
	if s.Kind == KindSwapExecution {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Call.Inputs.Commitments[:]), func(c [32]byte) bool { return c == [32]byte{} })
}

// indicesOf returns the indices of the commitments; nil while one is not found.
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

// reportCompleted reports a recorded landing to observer and log.
func (h *Handler) reportCompleted(ctx context.Context, s *Submission, o *Outcome) {
	if s.Kind == KindSwapExecution {
		h.Observer.Outcome(s.Kind, string(o.Phase))
		h.Observer.Stage("execute", h.Now().Sub(s.CreatedAt))
		h.Log.InfoContext(ctx, "swap ended", "request_id", s.Parent, "phase", o.Phase, "slot", o.Slot)
		return
	}
	h.Observer.Outcome(s.Kind, "completed")
	h.Observer.Stage("confirm", h.Now().Sub(s.CreatedAt))
	h.Log.InfoContext(ctx, "submission completed", "request_id", s.ID, "slot", o.Slot)
	if s.Kind == shieldpool.KindSwap && h.SecondLegDue != nil {
		h.SecondLegDue()
	}
}

// Finalize implements txmgr.Outcomes.
func (h *Handler) Finalize(ctx context.Context, landed []txmgr.Landed) (lost []txmgr.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.Timing.Lease)
	defer cancel()
	landings := make([]Landing, len(landed))
	for i, l := range landed {
		landings[i] = Landing{Lease: l.Lease, Outcome: Outcome{Signature: l.Signature, Slot: l.Slot, Returned: h.returnedRent(l)}}
	}
	h.addAtFinality(ctx, landed, landings)
	if lost, err = h.Store.Finalize(ctx, landings, h.ProofA.Learn(landed)); err != nil {
		return nil, err
	}
	for _, l := range landed {
		if slices.Contains(lost, l.Lease) {
			continue
		}
		h.Observer.Outcome(l.Kind, "finalized")
		h.Observer.Stage("finalize", h.Now().Sub(l.CreatedAt))
		h.Log.DebugContext(ctx, "submission finalized", "request_id", l.ID, "slot", l.Slot)
	}
	return lost, nil
}

// addAtFinality adds leaf indices and root for submissions that landed while the index or the chain
// did not answer. The store does not replace a root that it already has.
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

// TrimRow implements txmgr.Outcomes.
func (h *Handler) TrimRow(r txmgr.Row) txmgr.Row {
	s := r.(*Submission)
	w := &Submission{ID: s.ID, Parent: s.Parent, Kind: s.Kind, ProofAEncoding: s.ProofAEncoding}
	if s.Kind != KindSwapExecution {
		w.Call = &shieldpool.Call{Inputs: &shieldpool.PublicInputs{Commitments: s.Call.Inputs.Commitments}}
	}
	return w
}

// endPhase returns the phase in which a landed transaction of the purpose ends a swap; ""
// for a purpose that ends none.
func endPhase(p txmgr.Purpose) Phase {
	switch p {
	case txmgr.PurposeExecute:
		return PhaseExecuted
	case txmgr.PurposeRefund:
		return PhaseRefunded
	default:
		return ""
	}
}

// returnedRent returns the rent, in lamports, that a landing returned to the relay's payers.
// An execution returns the rent of the swap state to its own payer, which may be a stranger.
func (h *Handler) returnedRent(l txmgr.Landed) (lamports uint64) {
	if l.Ours && l.Purpose == txmgr.PurposeExecute {
		return h.Rent().Known().Minimum(shieldpool.SwapStateLength)
	}
	return 0
}
