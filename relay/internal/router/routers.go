package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

// Routers are one or more routers in the order in which they are preferred. It implements
// swap.Router: a router is asked when those before it gave no quote. Safe for concurrent use.
type Routers struct {
	clients []*Client
}

// NewRouters makes Routers of clients with different names, the preferred one first.
func NewRouters(clients ...*Client) (*Routers, error) {
	if len(clients) == 0 {
		return nil, errors.New("no swap router: expected at least one")
	}
	seen := map[string]bool{}
	for _, c := range clients {
		if c.name == "" || seen[c.name] {
			return nil, fmt.Errorf("swap router %q: expected names that are all different, and not empty", c.name)
		}
		seen[c.name] = true
	}
	return &Routers{clients: clients}, nil
}

// Quote returns the first quote that a router gives, beginning with that of q.First. Without a
// quote, it returns the error of the first router that answered, or else of the first one.
func (r *Routers) Quote(ctx context.Context, q swap.QuoteRequest) (*swap.Quote, error) {
	var fault error
	for i := range r.clients {
		quote, err := r.clients[(q.First+i)%len(r.clients)].Quote(ctx, q)
		if err == nil || ctx.Err() != nil || !mayDiffer(err) {
			return quote, err
		}
		if fault == nil || errors.Is(fault, swap.ErrRouterUnavailable) && !errors.Is(err, swap.ErrRouterUnavailable) {
			fault = err
		}
	}
	return nil, fault
}

// mayDiffer reports whether another router may give a quote where one gave this error. It may
// not for an invalid request. A route that is too large is asked for again, narrower, from the
// same router.
func mayDiffer(err error) bool {
	var noRoute *swap.NoRoute
	var rejected *swap.RejectedRoute
	if errors.As(err, &noRoute) {
		return noRoute.Code != swap.CodeTooLarge
	}
	return errors.As(err, &rejected) || errors.Is(err, swap.ErrRouterUnavailable)
}

// Instructions asks the router that gave the quote.
func (r *Routers) Instructions(ctx context.Context, q *swap.Quote, user solana.PublicKey) (*swap.Instructions, error) {
	for _, c := range r.clients {
		if q != nil && c.name == q.Router {
			return c.Instructions(ctx, q, user)
		}
	}
	return nil, errors.New("instructions for a quote of no router: expected one that Quote gave")
}

// Failing reports for each router, by its name, whether it fails: calls to it are skipped
// because the last ones failed, and one was requested within the last two minutes.
func (r *Routers) Failing() map[string]bool {
	failing := make(map[string]bool, len(r.clients))
	for _, c := range r.clients {
		failing[c.name] = c.failing()
	}
	return failing
}

// Close closes idle connections. Calls under way continue.
func (r *Routers) Close() {
	for _, c := range r.clients {
		c.Close()
	}
}
