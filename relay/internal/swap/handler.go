package swap

import (
	"context"
	"errors"
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// Store writes the parts of a swap that the manager does not write.
type Store interface {
	// UpdateSwap writes the phase of a second leg, as the chain shows it, and the swap's
	// timeout slot.
	UpdateSwap(ctx context.Context, l txmgr.Lease, phase submission.Phase, timeout uint64) error
}

// Handler runs the second legs of swaps. It implements txmgr.Handler.
type Handler struct {
	planner interface {
		Next(ctx context.Context, s *submission.Submission, tries int, minContextSlot uint64) (Order, error)
		Rejected(s *submission.Submission, d *txmgr.Draft, f *txmgr.Failure) error
	}
	manager *txmgr.Manager
	store   Store
}

// Serve adds a queue for second legs to the manager of h. The queue has a capacity of its own,
// because a slow router must not delay clients' proofs.
func (p *Planner) Serve(h *submission.Handler, capacity int) error {
	queue := &txmgr.Queue{
		Handler: &Handler{planner: p, manager: h.Manager, store: h.Store}, Claim: h.Store.ClaimSwapExecutions, Capacity: capacity, ReleaseWhenSent: true,
	}
	h.SecondLegDue = queue.ClaimSoon
	return h.Manager.Add(queue)
}

// Advance implements txmgr.Handler. A second leg never fails: the lamports in the swap
// state belong to the recipient, so the leg is retried after every error until they are
// swapped or refunded.
func (h *Handler) Advance(ctx context.Context, j *txmgr.Job) (txmgr.Next, error) {
	found, err := h.manager.Resolve(ctx, j)
	switch {
	case err != nil:
		return txmgr.Next{}, err
	case found.Landing != nil:
		return txmgr.Next{Landing: found.Landing}, nil
	case found.MayLand():
		return txmgr.Next{Track: true}, h.manager.Undecided(j)
	}
	order, err := h.order(ctx, j, found.MinContextSlot)
	if err != nil {
		return txmgr.Next{}, txmgr.Unreachable(j, err)
	}
	// Attempts that still count as live cannot land any more, even if no history shows
	// their outcome.
	if err := h.manager.MarkDead(ctx, j); err != nil {
		return txmgr.Next{}, err
	}
	if order.Ended != nil {
		return txmgr.Next{Landing: order.Ended}, nil
	}
	failure, err := h.manager.Launch(ctx, j, order.Draft, found.MinContextSlot)
	switch {
	case err != nil:
		return txmgr.Next{}, err
	case failure == nil:
		return txmgr.Next{Track: true}, nil
	case failure.PayerLacksLamports() || failure.Err.Kind != "InstructionError":
		return txmgr.Next{}, fmt.Errorf("try %s: %w", order.Draft.Purpose, failure.Err)
	}
	return txmgr.Next{}, h.planner.Rejected(submission.FromJob(j), order.Draft, failure)
}

// order asks the planner what to do, once no attempt of the second leg can land any
// more. It stores the swap's phase and timeout when the chain shows new values.
func (h *Handler) order(ctx context.Context, j *txmgr.Job, minContextSlot uint64) (Order, error) {
	s := submission.FromJob(j)
	order, err := h.planner.Next(ctx, s, countTries(j), minContextSlot)
	if wait := (*txmgr.Deferral)(nil); errors.As(err, &wait) {
		// The swap state is gone and no history shows how the swap ended: one of the
		// relay's attempts that counts as dead may have ended it.
		if own, searchErr := h.findOwnEnd(ctx, j, wait); own != nil || searchErr != nil {
			order, err = Order{Ended: own}, searchErr
		}
	}
	// The end of the swap is written when its landing is recorded.
	if order.Ended == nil && order.Phase != "" && (order.Phase != s.Swap.Phase || order.Timeout != s.Swap.TimeoutSlot) {
		if err := h.store.UpdateSwap(ctx, j.Lease, order.Phase, order.Timeout); err != nil {
			return order, err
		}
		s.Swap.Phase, s.Swap.TimeoutSlot = order.Phase, order.Timeout
	}
	return order, err
}
