package swap

import (
	"context"
	"errors"
	"time"

	"github.com/gagliardetto/solana-go"
)

const (
	// quoteMaxAge is how old a quote may be when its transaction is signed, and quoteSlots
	// how many slots the router may be behind the chain.
	quoteMaxAge = 2 * time.Second
	quoteSlots  = 150
)

// tooOld reports whether the transaction of a quote must not be signed any more.
func (q *Quote) tooOld(now time.Time) bool { return now.Sub(q.Received) > quoteMaxAge }

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
