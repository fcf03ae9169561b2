// Package swap decides how a swap goes on between its two legs: from lamports in a swap
// state to tokens at the recipient's account, or back to his wallet after the timeout. The
// next step follows from what the chain shows and nothing else, so that any process can go
// on where another stopped.
//
// It signs and sends nothing: the transaction manager does, under the rules for every
// attempt. This package enforces the user's minimum, and keeps instructions from being
// signed that a swap router must not have.
package swap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Chain is what the planner asks of the RPC. An error that wraps
// onchain.ErrUnavailable says nothing about what was asked.
type Chain interface {
	// Accounts reads accounts, all at the slot that it returns, which is not before
	// minContextSlot; the entry of one that does not exist is nil.
	Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error)
	// Settlement is the transaction that ended the swap in the slots from first to
	// last, confirmed at least; nil when no endpoint's history has it.
	Settlement(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error)
	// Corroborated reports whether the chain has reached a slot, by more than one endpoint
	// where several are configured.
	Corroborated(slot uint64) bool
}

// Router gives prices, and instructions for them. Its errors are
// *Unavailable, *NoRoute and *Hostile.
type Router interface {
	Quote(ctx context.Context, r QuoteRequest) (*Quote, error)
	// Instructions are those that carry the quote out for user, who owns what goes
	// in and what comes out.
	Instructions(ctx context.Context, q *Quote, user solana.PublicKey) (*Instructions, error)
}

// Payers are the fee payers, which no router may touch.
type Payers interface {
	Keys() []solana.PublicKey
}

// Observer counts what happens. Arguments are from fixed sets.
type Observer interface {
	// SwapDeferred counts a swap put off, by one of Reasons.
	SwapDeferred(reason string)
	// RouteRejected counts instructions that are not fit to be signed, by one of
	// RejectedReasons. What the router's client refuses, it counts itself.
	RouteRejected(what string)
}

// Options configure a Planner. All but Table are required.
type Options struct {
	Chain  Chain
	Router Router
	Pool   *shieldpool.Pool
	// RouterProgram is the only program that a router's instruction may call.
	RouterProgram solana.PublicKey
	// Table is the relay's own lookup table; nil for none.
	Table  *shieldpool.LookupTable
	Payers Payers
	// SlippageBps is by how many hundredths of a percent the price may worsen between
	// quote and execution, 1 to 10000; less when the user's minimum needs it.
	SlippageBps int
	Observer    Observer
	Log         *slog.Logger
	Now         func() time.Time
}

// Planner decides how swaps go on. It is safe for concurrent use.
type Planner struct {
	chain    Chain
	router   Router
	pool     *shieldpool.Pool
	program  solana.PublicKey
	table    *shieldpool.LookupTable
	payers   Payers
	slippage int
	observer Observer
	log      *slog.Logger
	now      func() time.Time
	memory   *memory
}

// New makes a Planner. It calls nothing: a router that is down when the relay starts
// may be up later.
func New(o Options) (*Planner, error) {
	switch {
	case o.Chain == nil || o.Router == nil || o.Pool == nil || o.Payers == nil:
		return nil, errors.New("swaps need a chain, a router, a pool and fee payers")
	case o.Observer == nil || o.Log == nil || o.Now == nil:
		return nil, errors.New("swaps need an observer, a log and a clock")
	case o.SlippageBps < 1 || o.SlippageBps > wholeBps:
		return nil, fmt.Errorf("swap slippage is %d hundredths of a percent: expected 1 to %d", o.SlippageBps, wholeBps)
	case o.RouterProgram.Equals(o.Pool.Profile.ProgramID) || slices.Contains(neverRouters(), o.RouterProgram):
		return nil, fmt.Errorf("router program %s is the pool's own or one of the network's: expected the program of the swap router", o.RouterProgram)
	}
	return &Planner{
		chain: o.Chain, router: o.Router, pool: o.Pool, program: o.RouterProgram, table: o.Table, payers: o.Payers,
		slippage: o.SlippageBps, observer: o.Observer, log: o.Log, now: o.Now, memory: newMemory(),
	}, nil
}

// round is one reading of a swap and the decision that follows from it.
type round struct {
	c     *submission.Submission
	swap  *shieldpool.Swap
	terms shieldpool.SwapTerms
	facts
	// began is the slot in which the first leg landed, 0 when not known.
	began uint64
	// at is when the chain was read, by the relay's clock.
	at time.Time
	// lamports are what the state holds; wrapped says that its token account has them.
	lamports uint64
	wrapped  bool
	// wallet owns the recipient's token account, and gets the lamports back.
	wallet solana.PublicKey
	ended  *onchain.SwapEnd
	// level is how narrow a route the router was asked for, and offer what it gave.
	level int
	offer *Quote
}

// Order is what is to be done with a second leg. Either Draft or Ended is set.
type Order struct {
	// Phase and Timeout are what the chain shows. The timeout is the recorded one when only
	// a single endpoint reports the slot of the reading: no node could answer at a beginning
	// that follows from a timeout far ahead.
	Phase   submission.Phase
	Timeout uint64
	// Draft is a transaction to sign and send.
	Draft *txmgr.Draft
	// Ended is the end, found on the chain.
	Ended *txmgr.Landing
}

// Next says what to do with a second leg once no earlier attempt of it can land, from what
// the chain shows at floor or later. Its error is a *txmgr.Deferral for one of Reasons when
// there is nothing to do yet, or the chain's error. Phase and timeout are set with an error
// too, while the chain shows the swap state.
func (s *Planner) Next(ctx context.Context, c *submission.Submission, floor uint64) (Order, error) {
	r, err := s.observe(ctx, c, floor)
	if err != nil {
		return Order{}, err
	}
	order := Order{}
	if r.state == stateHeld {
		order.Phase, order.Timeout = submission.PhaseFunded, c.Swap.TimeoutSlot
		if s.chain.Corroborated(r.slot) {
			order.Timeout = r.timeout
		}
	}
	for {
		next, reason := plan(&r.facts)
		switch next {
		case stepFindEnd:
			err = s.findEnd(ctx, r)
		case stepEnd:
			return s.ended(r), nil
		case stepQuote:
			err = s.quote(ctx, r)
		case stepExecute:
			order.Draft, err = s.execute(ctx, r)
			if err != nil || order.Draft != nil {
				return order, err
			}
		case stepRefund:
			order.Draft = s.refund(r)
			return order, nil
		default:
			return order, s.deferral(r, reason, nil)
		}
		if err != nil {
			return order, err
		}
	}
}

// ended is the order for a swap that has already ended, possibly by a lost attempt of ours.
func (s *Planner) ended(r *round) Order {
	s.memory.forget(r.c.ID)
	phase, purpose := submission.PhaseExecuted, txmgr.PurposeExecute
	if r.ended.How == shieldpool.Refunded {
		phase, purpose = submission.PhaseRefunded, txmgr.PurposeRefund
	}
	return Order{Phase: phase, Timeout: r.timeout, Ended: &txmgr.Landing{Signature: r.ended.Signature, Slot: r.ended.Slot, Purpose: purpose}}
}

// findEnd looks for the transaction that ended the swap.
func (s *Planner) findEnd(ctx context.Context, r *round) error {
	// Transactions that strangers send to the address before the range or after the end
	// are not read. The end itself may be younger than the first round that missed the
	// state: a fork can take the state away and bring it back.
	held := s.memory.recall(r.c.ID).held
	settled, err := s.chain.Settlement(ctx, r.swap, max(r.began, held-min(held, forkSlots)), r.slot)
	if err != nil {
		return fmt.Errorf("look for the swap's end: %w", err)
	}
	r.ended, r.end = settled, endUnknown
	if settled != nil {
		r.end = endFound
	}
	return nil
}
