package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

const (
	// quoteMaxAge is how old a quote may be when its transaction is signed, and quoteSlots
	// how many slots the router may be behind the chain.
	quoteMaxAge = 2 * time.Second
	quoteSlots  = 150
)

// errTooLarge says that a route does not fit a transaction; a narrower route may fit.
var errTooLarge = errors.New("the route does not fit a transaction")

// quote asks for a price, first with the configured slippage. When the expected output
// meets the user's minimum but the threshold does not, quote asks again with less slippage,
// so that the router's program itself enforces the minimum.
func (s *Planner) quote(ctx context.Context, r *snapshot) error {
	s.remember(r, func(tries *earlierTries) { tries.first = r.first })
	q, err := s.ask(ctx, r, s.slippage, "")
	if err != nil {
		return err
	}
	if q.Threshold < r.terms.MinOutput && q.OutAmount >= r.terms.MinOutput {
		// The slippage follows from this router's price, so it does not fit another router's.
		if q, err = s.ask(ctx, r, slippageFor(q.OutAmount, r.terms.MinOutput), q.Router); err != nil {
			return err
		}
	}
	r.quote, r.facts.quote = q, quoteShort
	if q.Threshold >= r.terms.MinOutput {
		r.facts.quote = quoteMeets
	}
	return nil
}

// ask asks for a quote, and for narrower routes while a router answers that a route is too
// large. only is the name of the one router to ask; empty for all.
func (s *Planner) ask(ctx context.Context, r *snapshot, slippage int, only string) (*Quote, error) {
	for {
		w := routeWidths()[r.level]
		q, err := s.router.Quote(ctx, QuoteRequest{
			InputMint: solana.WrappedSol, OutputMint: r.terms.OutputMint, User: r.accounts.State, Amount: r.lamports,
			SlippageBps: slippage, MaxAccounts: w.accounts, DirectOnly: w.direct, First: r.first, Only: only,
		})
		if err == nil {
			err = checkQuote(q, r.lamports)
		}
		if err == nil && q.ContextSlot > 0 && q.ContextSlot+quoteSlots < r.slot {
			return nil, s.deferral(r, ReasonQuoteStale, nil)
		}
		if err = s.classify(ctx, r, err); !errors.Is(err, errTooLarge) {
			return q, err
		}
		if err := s.retryNarrower(r); err != nil {
			return nil, err
		}
	}
}

// checkQuote rejects a quote that contradicts the request or itself.
func checkQuote(q *Quote, lamports uint64) error {
	switch {
	case q.InAmount != lamports:
		return &rejectedByGuard{RejectedRoute{What: RejectedAmount, Router: q.Router}}
	case q.Threshold > q.OutAmount:
		return &rejectedByGuard{RejectedRoute{What: RejectedThreshold, Router: q.Router}}
	default:
		return nil
	}
}

func (s *Planner) remember(r *snapshot, change func(*earlierTries)) {
	s.memory.update(r.submission.ID, s.now(), change)
}

// rejectedByGuard is a rejection by the planner, in contrast to one by the router's client.
type rejectedByGuard struct{ RejectedRoute }

// classify turns a router's error into a deferral. It passes on errTooLarge and deferrals,
// and wraps other errors.
func (s *Planner) classify(ctx context.Context, r *snapshot, err error) error {
	var (
		byGuard  *rejectedByGuard
		byClient *RejectedRoute
		noRoute  *NoRoute
		wait     *txmgr.Deferral
	)
	switch {
	case err == nil, errors.Is(err, errTooLarge), errors.As(err, &wait):
		return err
	case errors.As(err, &byGuard):
		if r.quote != nil {
			byGuard.Router = r.quote.Router
		}
		s.observer.RouteRejected(byGuard.What)
		return s.rejectRoute(ctx, r, &byGuard.RejectedRoute)
	case errors.As(err, &byClient):
		return s.rejectRoute(ctx, r, byClient)
	case errors.As(err, &noRoute) && noRoute.Code == CodeTooLarge:
		return errTooLarge
	case errors.As(err, &noRoute):
		// There may be a wider route, so the next pass starts with the widest.
		s.remember(r, func(tries *earlierTries) { tries.levels[r.first] = 0 })
		return s.deferral(r, ReasonNoRoute, err)
	case errors.Is(err, ErrRouterUnavailable) && ctx.Err() == nil:
		return s.deferral(r, ReasonRouterUnavailable, err)
	default:
		// Either reading the chain failed, or the caller stopped waiting. Neither is a
		// reason to defer the swap.
		return fmt.Errorf("prepare the swap: %w", err)
	}
}

// rejectRoute defers a swap because the router's answer must not be signed. It logs each kind
// of rejection once for a router and swap, because every try may bring the same one.
func (s *Planner) rejectRoute(ctx context.Context, r *snapshot, rejected *RejectedRoute) error {
	known := false
	s.remember(r, func(tries *earlierTries) {
		known, tries.rejected[*rejected] = tries.rejected[*rejected], true
	})
	if !known {
		s.log.WarnContext(ctx, "swap route rejected", "request_id", r.submission.Parent, "router", rejected.Router, "what", rejected.What)
	}
	return s.deferral(r, ReasonRouteRejected, rejected)
}
