package swap

import (
	"context"
	"fmt"
	"slices"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// findEnd searches the history for the transaction that ended the swap.
func (s *Planner) findEnd(ctx context.Context, r *snapshot) error {
	// Strangers can send any number of transactions to the state's address, so the search
	// covers as few slots as possible. It starts forkSlots before the newest slot at which
	// the state was seen, because a fork may have shown the state once more after the
	// swap's end. It goes on to the slot of this snapshot, because a fork may have hidden
	// the state at an earlier slot, before the swap's end.
	stateSeen := s.memory.get(r.submission.ID).stateSeen
	ended, err := s.chain.FindSwapEnd(ctx, r.accounts, max(r.firstLegSlot, stateSeen-min(stateSeen, forkSlots)), r.slot)
	if err != nil {
		return fmt.Errorf("find the swap's end: %w", err)
	}
	r.ended, r.end = ended, endUnknown
	if ended != nil {
		r.end = endFound
	}
	return nil
}

// ended returns the order for a swap that has already ended. The transaction that ended the swap
// may be one of the relay's own attempts, even one that was marked dead.
func (s *Planner) ended(r *snapshot) Order {
	s.memory.forget(r.submission.ID)
	phase, purpose := submission.PhaseExecuted, txmgr.PurposeExecute
	if r.ended.How == shieldpool.Refunded {
		phase, purpose = submission.PhaseRefunded, txmgr.PurposeRefund
	}
	return Order{Phase: phase, Timeout: r.timeout, Ended: &txmgr.Landing{Signature: r.ended.Signature, Slot: r.ended.Slot, Purpose: purpose}}
}

// findOwnEnd searches for the relay's own attempt, live or dead, that ended the swap.
func (h *Handler) findOwnEnd(ctx context.Context, j *txmgr.Job, wait *txmgr.Deferral) (*txmgr.Landing, error) {
	if wait.Reason != txmgr.HoldHistory {
		return nil, nil //nolint:nilnil // nil: no own attempt is known to have ended the swap, as for FindLanding
	}
	// An earlier release created token accounts in separate attempts, which did not end the
	// swap.
	ends := slices.DeleteFunc(j.Attempts(), func(a txmgr.Attempt) bool {
		return a.Purpose != txmgr.PurposeExecute && a.Purpose != txmgr.PurposeRefund
	})
	return h.manager.FindLanding(ctx, j, ends)
}
