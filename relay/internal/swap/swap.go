// Package swap decides the next step of a swap once its first leg has landed. The first leg
// puts the lamports into the swap state. The second leg swaps them for tokens in the
// recipient's token account or, after the timeout, refunds them to the recipient's wallet.
// The next step follows only from what the chain shows, so that any process can continue
// where another stopped.
//
// The package signs and sends nothing: the transaction manager does, under the same rules
// as for every other attempt. This package enforces the user's minimum, and rejects the
// router's instructions if they must not be signed.
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

// Chain is what the planner needs of the RPC endpoints. An error that wraps
// onchain.ErrUnavailable means that there is no usable answer.
type Chain interface {
	// Accounts reads accounts in the order of keys, all at the slot that it returns, which
	// is minContextSlot or later; nil for an account that does not exist.
	Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error)
	// FindSwapEnd finds the transaction that ended the swap, in the slots from first to last.
	// The transaction is at least confirmed. The result is nil if no endpoint's history has
	// such a transaction.
	FindSwapEnd(ctx context.Context, swap *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error)
	// Corroborated reports whether two endpoints, or the only one configured, confirm that
	// the chain has reached a slot.
	Corroborated(slot uint64) bool
}

// Router gives prices, and instructions for them. Its errors are *RouterUnavailable,
// *NoRoute and *RejectedRoute, except for an invalid request.
type Router interface {
	Quote(ctx context.Context, r QuoteRequest) (*Quote, error)
	// Instructions returns the instructions that carry out the quote for user, who owns the
	// accounts of the input and the output.
	Instructions(ctx context.Context, q *Quote, user solana.PublicKey) (*Instructions, error)
	// Len is how many routers take turns; at least 1.
	Len() int
}

// Payers are the fee payers, whose accounts no router may name.
type Payers interface {
	Keys() []solana.PublicKey
}

// Observer counts what happens. Arguments are from fixed sets.
type Observer interface {
	// SwapDeferred counts a deferred swap, by one of Reasons.
	SwapDeferred(reason string)
	// RouteRejected counts a quote or an instruction that the planner rejects, by one of
	// RejectedReasons. The router's client counts what the client rejects.
	RouteRejected(what string)
}

// Options configure a Planner. All but Table and Formats are required.
type Options struct {
	Chain  Chain
	Router Router
	Pool   *shieldpool.Pool
	// RouterProgram is the only program that a router's instruction may call.
	RouterProgram solana.PublicKey
	// Table is the relay's own lookup table; nil for none.
	Table *shieldpool.LookupTable
	// Formats are the formats that transactions may have; nil for V0 only.
	Formats shieldpool.Formats
	Payers  Payers
	// SlippageBps is how far the price may worsen between quote and execution, from 1 to
	// 10000 hundredths of a percent. The planner asks for less when the user's minimum
	// requires it.
	SlippageBps int
	Observer    Observer
	Log         *slog.Logger
	Now         func() time.Time
	// SlotDuration returns how long a slot takes.
	SlotDuration func() time.Duration
}

// Planner decides the next step of second legs. It is safe for concurrent use.
type Planner struct {
	chain        Chain
	router       Router
	pool         *shieldpool.Pool
	program      solana.PublicKey
	table        *shieldpool.LookupTable
	formats      shieldpool.Formats
	payers       Payers
	slippage     int
	observer     Observer
	log          *slog.Logger
	now          func() time.Time
	slotDuration func() time.Duration
	memory       *memory
}

// New makes a Planner. It makes no call: a router that is down when the relay starts may be
// up later.
func New(o Options) (*Planner, error) {
	switch {
	case o.Chain == nil || o.Router == nil || o.Pool == nil || o.Payers == nil:
		return nil, errors.New("swaps need a chain, a router, a pool and fee payers")
	case o.Observer == nil || o.Log == nil || o.Now == nil || o.SlotDuration == nil:
		return nil, errors.New("swaps need an observer, a log and a clock")
	case o.SlippageBps < 1 || o.SlippageBps > wholeBps:
		return nil, fmt.Errorf("swap slippage is %d hundredths of a percent: expected 1 to %d", o.SlippageBps, wholeBps)
	case o.RouterProgram.Equals(o.Pool.Profile.ProgramID) || slices.Contains(forbiddenPrograms(), o.RouterProgram):
		return nil, fmt.Errorf("router program %s is the pool's own or one of the network's: expected the program of the swap router", o.RouterProgram)
	}
	if o.Formats == nil {
		o.Formats = func() []shieldpool.Format { return []shieldpool.Format{shieldpool.V0} }
	}
	return &Planner{
		chain: o.Chain, router: o.Router, pool: o.Pool, program: o.RouterProgram, table: o.Table, formats: o.Formats, payers: o.Payers,
		slippage: o.SlippageBps, observer: o.Observer, log: o.Log, now: o.Now, slotDuration: o.SlotDuration, memory: newMemory(),
	}, nil
}

// snapshot is what was read of a swap at one slot, and what follows from it.
type snapshot struct {
	submission *submission.Submission
	// accounts has the addresses of the swap's accounts, and builds the instructions that use
	// them.
	accounts *shieldpool.Swap
	terms    shieldpool.SwapTerms
	facts
	// firstLegSlot is the slot in which the first leg landed, 0 when not known.
	firstLegSlot uint64
	// at is when the chain was read, by the relay's clock.
	at time.Time
	// lamports is the amount that the state holds. wrapped says that the lamports are in the
	// state's wrapped SOL account.
	lamports uint64
	wrapped  bool
	// wallet owns the recipient's token account, and receives a refund.
	wallet solana.PublicKey
	// ended is the transaction that ended the swap; nil when none was found.
	ended *onchain.SwapEnd
	// level is the index in routeWidths of the requested route; quote is the quote
	// received.
	level int
	quote *Quote
	// first is QuoteRequest.First of this pass.
	first int
}

// Order is the next action for a second leg. Without an error, either Draft or Ended is
// set.
type Order struct {
	// Phase and Timeout are what the chain shows. While only a single endpoint reports the
	// snapshot's slot, Timeout is the recorded one, because a false timeout must not be
	// recorded. The relay derives the slot of the first leg from the recorded timeout, and
	// later reads require that slot. If it were far ahead, no node could answer them.
	Phase   submission.Phase
	Timeout uint64
	// Draft is a transaction to sign and send.
	Draft *txmgr.Draft
	// Ended is the transaction that ended the swap, found on the chain.
	Ended *txmgr.Landing
}

// Next decides what to do with a second leg, once no earlier attempt of the leg can land. It
// goes by what the chain shows at minContextSlot or later. If there is nothing to do yet, the
// error is a *txmgr.Deferral for one of Reasons; any other error means that Next could not
// decide. While the chain shows the swap state, Phase and Timeout are set even with an error.
func (s *Planner) Next(ctx context.Context, c *submission.Submission, tries int, minContextSlot uint64) (Order, error) {
	r, err := s.observe(ctx, c, tries, minContextSlot)
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
