package submission

import (
	"context"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Complete implements txmgr.Outcomes. Each call gets landings of one queue: either of clients'
// submissions, or of swaps' second legs.
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

// TrimRow implements txmgr.Outcomes.
func (h *Handler) TrimRow(r txmgr.Row) txmgr.Row {
	s := r.(*Submission)
	w := &Submission{ID: s.ID, Parent: s.Parent, Kind: s.Kind, ProofAEncoding: s.ProofAEncoding}
	if s.Kind != KindSwapExecution {
		w.Call = &shieldpool.Call{Inputs: &shieldpool.PublicInputs{Commitments: s.Call.Inputs.Commitments}}
	}
	return w
}

// endPhase returns the phase of a swap after a transaction with the purpose has ended it; "" if
// transactions with the purpose do not end swaps.
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
