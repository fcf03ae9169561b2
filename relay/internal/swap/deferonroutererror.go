package swap

import (
	"context"
	"errors"
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

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
