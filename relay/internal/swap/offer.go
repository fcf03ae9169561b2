package swap

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/route"
	"github.com/relaypool/relaypool/relay/internal/submission"
)

const (
	// wholeBps is all of a price, in hundredths of a percent.
	wholeBps = 10_000
	// quoteLife is how old a quote may be when it is signed, and quoteSlots how many
	// slots the router may be behind the chain.
	quoteLife  = 2 * time.Second
	quoteSlots = 150
)

// width is how narrow a route is asked for.
type width struct {
	accounts int
	direct   bool
}

// widths are tried from the first on: a route through fewer accounts has a worse
// price, and a smaller transaction.
func widths() []width {
	return []width{{}, {accounts: 40}, {accounts: 28}, {accounts: 20}, {accounts: 20, direct: true}}
}

// errTooLarge says that a route does not fit a transaction; a narrower one may.
var errTooLarge = errors.New("the route does not fit a transaction")

// quote asks for a price, first at the configured slippage. Where that leaves
// less than the user's minimum though the market gives it, it asks again for
// less slippage, so that the router's program itself keeps the minimum.
func (s *Saga) quote(ctx context.Context, r *round) error {
	q, err := s.ask(ctx, r, s.slippage)
	if err != nil {
		return err
	}
	if q.Threshold < r.terms.MinOutput && q.OutAmount >= r.terms.MinOutput {
		if q, err = s.ask(ctx, r, tighten(q.OutAmount, r.terms.MinOutput)); err != nil {
			return err
		}
	}
	r.offer, r.facts.quote = q, quoteShort
	if q.Threshold >= r.terms.MinOutput {
		r.facts.quote = quoteMeets
	}
	return nil
}

// tighten is the slippage with which out leaves at least least of out, in
// hundredths of a percent, rounded down: in favour of the user.
func tighten(out, least uint64) int {
	room := new(big.Int).SetUint64(out - least)
	room.Mul(room, big.NewInt(wholeBps)).Div(room, new(big.Int).SetUint64(out))
	return int(room.Int64())
}

// ask asks the router, for narrower routes where it says that one is too large.
func (s *Saga) ask(ctx context.Context, r *round, slippage int) (*route.Quote, error) {
	for {
		w := widths()[r.level]
		q, err := s.router.Quote(ctx, route.QuoteRequest{
			InputMint: solana.WrappedSol, OutputMint: r.terms.OutputMint, Amount: r.lamports,
			SlippageBps: slippage, MaxAccounts: w.accounts, DirectOnly: w.direct,
		})
		if err == nil {
			err = checkQuote(q, r.lamports)
		}
		if err == nil && q.ContextSlot > 0 && q.ContextSlot+quoteSlots < r.slot {
			return nil, s.wait(r, ReasonQuoteStale, nil)
		}
		if err = s.judge(ctx, r, err); !errors.Is(err, errTooLarge) {
			return q, err
		}
		if err := s.narrow(r); err != nil {
			return nil, err
		}
	}
}

// checkQuote refuses a price that is not for what was asked.
func checkQuote(q *route.Quote, lamports uint64) error {
	switch {
	case q.InAmount != lamports:
		return &found{route.Hostile{What: route.HostileAmount}}
	case q.Threshold > q.OutAmount:
		return &found{route.Hostile{What: route.HostileThreshold}}
	default:
		return nil
	}
}

// narrow goes on to a narrower route.
func (s *Saga) narrow(r *round) error {
	if r.level+1 >= len(widths()) {
		// The next round begins anew: routes come and go.
		s.remember(r, func(k *recollection) { k.level = 0 })
		return s.wait(r, ReasonRouteTooLarge, nil)
	}
	r.level++
	r.offer, r.facts.quote = nil, quoteUnread
	s.remember(r, func(k *recollection) { k.level = r.level })
	return nil
}

func (s *Saga) remember(r *round, change func(*recollection)) {
	s.memory.note(r.c.ID, s.now(), change)
}

// found is a hostile answer that the saga has found, not the router's client.
type found struct{ route.Hostile }

// judge makes of a router's error what the swap waits for. Others it leaves.
func (s *Saga) judge(ctx context.Context, r *round, err error) error {
	var (
		own     *found
		hostile *route.Hostile
		none    *route.NoRoute
		wait    *submission.Wait
	)
	switch {
	case err == nil, errors.Is(err, errTooLarge), errors.As(err, &wait):
		return err
	case errors.As(err, &own):
		s.observer.RouterHostile(own.What)
		return s.hostile(ctx, r, &own.Hostile)
	case errors.As(err, &hostile):
		return s.hostile(ctx, r, hostile)
	case errors.As(err, &none) && none.Code == route.CodeTooLarge:
		return errTooLarge
	case errors.As(err, &none):
		// Perhaps there is none so narrow.
		s.remember(r, func(k *recollection) { k.level = 0 })
		return s.wait(r, ReasonNoRoute, err)
	case errors.Is(err, route.ErrUnavailable) && ctx.Err() == nil:
		return s.wait(r, ReasonRouterUnavailable, err)
	default:
		// The chain's, or the caller stopped waiting: the swap waits for nothing.
		return fmt.Errorf("prepare the swap: %w", err)
	}
}

// hostile puts a swap off for an answer that is not fit to be signed. It is told
// of once for each swap and finding, because it comes again with every try.
func (s *Saga) hostile(ctx context.Context, r *round, h *route.Hostile) error {
	if s.memory.recall(r.c.ID).warned != h.What {
		s.log.WarnContext(ctx, "Refused an answer of the swap router", "request_id", r.c.Parent, "what", h.What)
	}
	s.remember(r, func(k *recollection) { k.warned = h.What })
	return s.wait(r, ReasonRouterHostile, h)
}
