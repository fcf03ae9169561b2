package submission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// endPhase is how a swap ended whose attempt of the purpose landed; "" for a purpose
// that ends none.
func (p Purpose) endPhase() Phase {
	switch p {
	case PurposeExecute:
		return PhaseExecuted
	case PurposeRefund:
		return PhaseRefunded
	default:
		return ""
	}
}

// advanceExecution takes a swap's second leg as far as it goes now. It never fails: the
// lamports in the swap state belong to the recipient, so that whatever is
// wrong, it is tried again until they are swapped or given back.
func (e *Engine) advanceExecution(ctx context.Context, w *entry) (follow bool, err error) {
	c, p := w.c, &progress{}
	if len(c.Live) > 0 {
		if err := e.resolveAttempts(ctx, w, p); err != nil {
			return false, err
		}
	}
	if p.landing != nil {
		e.tracker.record(w, *p.landing)
		return true, nil
	}
	for _, v := range p.verdicts {
		if v == mayLand {
			return true, e.undecided(c)
		}
	}
	return e.planExecution(ctx, w, p)
}

// planExecution does what the settler says, nothing of the settlement being able to
// land any more.
func (e *Engine) planExecution(ctx context.Context, w *entry, p *progress) (follow bool, err error) {
	c := w.c
	order, err := e.SwapPlanner.Next(ctx, c, p.minContextSlot)
	if wait := (*Deferral)(nil); errors.As(err, &wait) {
		// What is gone from the chain's state, and in no endpoint's history, may have been settled by us.
		if own, searchErr := e.findOwnExecution(ctx, c, wait); own != nil || searchErr != nil {
			order, err = SwapOrder{Ended: own}, searchErr
		}
	}
	if noteErr := e.updateSwap(ctx, c, &order); noteErr != nil {
		return false, noteErr
	}
	if err != nil {
		return false, e.unreachable(c, err)
	}
	// Whatever still counts as live cannot land: only its history is missing.
	if err := e.markDead(ctx, c, asExpired(c.Live)); err != nil {
		return false, err
	}
	if order.Ended != nil {
		e.tracker.record(w, *order.Ended)
		return true, nil
	}
	follow, err = e.launch(ctx, c, p, order.Draft)
	if err != nil || follow {
		return follow, err
	}
	if p.class == shieldpool.ClassFeePayerEmpty || p.failure.Kind != "InstructionError" {
		return false, fmt.Errorf("try %s: %w", order.Draft.Purpose, p.failure)
	}
	return false, e.SwapPlanner.Rejected(ctx, c, order.Draft, p.failure)
}

// updateSwap writes where the swap stands when the chain shows it elsewhere. An
// end is written with its landing.
func (e *Engine) updateSwap(ctx context.Context, c *Claimed, o *SwapOrder) error {
	if o.Ended != nil || o.Phase == "" || (o.Phase == c.Swap.Phase && o.Timeout == c.Swap.TimeoutSlot) {
		return nil
	}
	if err := e.Store.UpdateSwap(ctx, c.Lease(), o.Phase, o.Timeout); err != nil {
		return err
	}
	c.Swap.Phase, c.Swap.TimeoutSlot = o.Phase, o.Timeout
	return nil
}

// findOwnExecution looks for an attempt that settled the swap, dead ones included.
func (e *Engine) findOwnExecution(ctx context.Context, c *Claimed, w *Deferral) (*Outcome, error) {
	if w.Reason != HoldHistory {
		return nil, nil //nolint:nilnil // nil is "none of ours", as findOwnLanding's
	}
	// An earlier release made token accounts apart: such an attempt ended nothing.
	ends := slices.DeleteFunc(slices.Concat(c.Live, c.Dead), func(a Attempt) bool { return a.Purpose.endPhase() == "" })
	return e.findOwnLanding(ctx, c, ends)
}

// returnedRent is what our payers got back, in lamports, with a landing: our execution
// gives its payer the rent of the state. A stranger's gave it to him.
func returnedRent(c *Claimed, o *Outcome) (lamports uint64) {
	for _, a := range slices.Concat(c.Live, c.Dead) {
		if a.Signature == o.Signature && a.Purpose == PurposeExecute {
			return shieldpool.SwapStateRent
		}
	}
	return 0
}

// claimExecutions takes up second legs that are due, in places of their own: a
// slow router must not keep clients' proofs waiting.
func (e *Engine) claimExecutions(ctx context.Context) {
	if e.SwapPlanner == nil {
		return
	}
	tick := time.NewTicker(e.Timing.Sweep)
	defer tick.Stop()
	for {
		select {
		case <-e.stopping.Done():
			return
		case <-e.executionsDue:
		case <-tick.C:
		}
		for e.claimExecutionBatch(ctx) && ctx.Err() == nil {
		}
	}
}

func (e *Engine) claimExecutionBatch(ctx context.Context) (more bool) {
	places := e.executionCapacity.acquire(claimLimit)
	if places == 0 {
		return false
	}
	call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	claimed, err := e.Store.ClaimSwapExecutions(call, e.Worker, places)
	for range places - len(claimed) {
		e.executionCapacity.release()
	}
	if err != nil {
		if ctx.Err() == nil {
			e.Log.WarnContext(ctx, "claiming due swap executions failed", "error", err)
		}
		return false
	}
	if len(claimed) > 0 {
		e.Observer.Lease("claimed", len(claimed))
	}
	for _, c := range claimed {
		e.start(ctx, c)
	}
	return len(claimed) == places
}

// capacityFor are the places that a claim takes one of.
func (e *Engine) capacityFor(c *Claimed) *capacity {
	if c.Kind == KindSwapExecution {
		return &e.executionCapacity
	}
	return &e.capacity
}
