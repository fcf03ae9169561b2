package submission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// ends is how a swap ended whose attempt of the purpose landed; "" for a purpose
// that ends none.
func (p Purpose) ends() Phase {
	switch p {
	case PurposeExecute:
		return PhaseExecuted
	case PurposeRefund:
		return PhaseRefunded
	default:
		return ""
	}
}

// settle takes a swap's second leg as far as it goes now. It never fails: the
// lamports in the swap state belong to the recipient, so that whatever is
// wrong, it is tried again until they are swapped or given back.
func (e *Engine) settle(ctx context.Context, w *entry) (follow bool, err error) {
	c, p := w.c, &progress{}
	if len(c.Live) > 0 {
		if err := e.judgeLive(ctx, w, p); err != nil {
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
	return e.proceed(ctx, w, p)
}

// proceed does what the settler says, nothing of the settlement being able to
// land any more.
func (e *Engine) proceed(ctx context.Context, w *entry, p *progress) (follow bool, err error) {
	c := w.c
	order, err := e.Settler.Next(ctx, c, p.floor)
	if wait := (*Wait)(nil); errors.As(err, &wait) {
		// What is gone from the chain's state, and in no endpoint's history, may have been settled by us.
		if own, searchErr := e.ownSettlement(ctx, c, wait); own != nil || searchErr != nil {
			order, err = Order{Settled: own}, searchErr
		}
	}
	if noteErr := e.noteSwap(ctx, c, &order); noteErr != nil {
		return false, noteErr
	}
	if err != nil {
		return false, e.unreachable(c, err)
	}
	// Whatever still counts as live cannot land: only its history is missing.
	if err := e.bury(ctx, c, burials(c.Live)); err != nil {
		return false, err
	}
	if order.Settled != nil {
		e.tracker.record(w, *order.Settled)
		return true, nil
	}
	follow, err = e.launch(ctx, c, p, order.Draft)
	if err != nil || follow {
		return follow, err
	}
	if p.class == shieldpool.ClassFeePayerEmpty || p.failure.Kind != "InstructionError" {
		return false, fmt.Errorf("try %s: %w", order.Draft.Purpose, p.failure)
	}
	return false, e.Settler.Refused(ctx, c, order.Draft, p.failure)
}

// noteSwap writes where the swap stands when the chain shows it elsewhere. An
// end is written with its landing.
func (e *Engine) noteSwap(ctx context.Context, c *Claimed, o *Order) error {
	if o.Settled != nil || o.Phase == "" || (o.Phase == c.Swap.Phase && o.Timeout == c.Swap.TimeoutSlot) {
		return nil
	}
	if err := e.Store.NoteSwap(ctx, c.Lease(), o.Phase, o.Timeout); err != nil {
		return err
	}
	c.Swap.Phase, c.Swap.TimeoutSlot = o.Phase, o.Timeout
	return nil
}

// ownSettlement looks for an attempt that settled the swap, dead ones included.
func (e *Engine) ownSettlement(ctx context.Context, c *Claimed, w *Wait) (*Outcome, error) {
	if w.Reason != HoldHistory {
		return nil, nil //nolint:nilnil // nil is "none of ours", as ownLanding's
	}
	// An earlier release made token accounts apart: such an attempt ended nothing.
	ends := slices.DeleteFunc(slices.Concat(c.Live, c.Dead), func(a Attempt) bool { return a.Purpose.ends() == "" })
	return e.ownLanding(ctx, c, ends)
}

// returned is what our payers got back, in lamports, with a landing: our execution
// gives its payer the rent of the state. A stranger's gave it to him.
func returned(c *Claimed, o *Outcome) (lamports uint64) {
	for _, a := range slices.Concat(c.Live, c.Dead) {
		if a.Signature == o.Signature && a.Purpose == PurposeExecute {
			return swapStateRent
		}
	}
	return 0
}

// claimSettlements takes up second legs that are due, in places of their own: a
// slow router must not keep clients' proofs waiting.
func (e *Engine) claimSettlements(ctx context.Context) {
	if e.Settler == nil {
		return
	}
	tick := time.NewTicker(e.Timing.Sweep)
	defer tick.Stop()
	for {
		select {
		case <-e.stopping.Done():
			return
		case <-e.settling:
		case <-tick.C:
		}
		for e.takeSettlements(ctx) && ctx.Err() == nil {
		}
	}
}

func (e *Engine) takeSettlements(ctx context.Context) (more bool) {
	places := e.settlements.take(claimBatch)
	if places == 0 {
		return false
	}
	call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	claimed, err := e.Store.ClaimSettlements(call, e.Worker, places)
	for range places - len(claimed) {
		e.settlements.give()
	}
	if err != nil {
		if ctx.Err() == nil {
			e.Log.WarnContext(ctx, "Could not claim due settlements", "error", err)
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

// placesOf are the places that a claim takes one of.
func (e *Engine) placesOf(c *Claimed) *slots {
	if c.Kind == KindSettlement {
		return &e.settlements
	}
	return &e.slots
}
