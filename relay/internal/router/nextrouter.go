package router

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

// Routers has one or more routers, in the order of preference. It implements swap.Router: it
// asks a router if the routers before it gave no quote. It is safe for concurrent use.
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
		if seen[c.name] {
			return nil, fmt.Errorf("two swap routers have the name %q: expected names that are all different", c.name)
		}
		seen[c.name] = true
	}
	return &Routers{clients: clients}, nil
}

// maxQuoting bounds the time in which several routers are asked one after another, their
// queues and budgets included; each gets an equal share. A step of a swap has 30 s, and may ask
// for a second quote.
const maxQuoting = 12 * time.Second

// Quote asks the routers in turn, beginning with that of q.First, and returns the first quote. If
// no router gives a quote, it returns the error of the first router asked that answered, or else
// of the first one asked, with the shortest wait for which a router asks.
func (r *Routers) Quote(ctx context.Context, q swap.QuoteRequest) (*swap.Quote, error) {
	if q.Only != "" {
		c, err := r.named(q.Only)
		if err != nil {
			return nil, err
		}
		return c.Quote(ctx, q)
	}
	if len(r.clients) == 1 {
		return r.clients[0].Quote(ctx, q)
	}
	var fault error
	wait := time.Duration(math.MaxInt64)
	for i := range r.clients {
		share, cancel := context.WithTimeout(ctx, maxQuoting/time.Duration(len(r.clients)))
		quote, err := r.clients[(q.First+i)%len(r.clients)].Quote(share, q)
		cancel()
		if err == nil || ctx.Err() != nil || !anotherMayQuote(err) {
			return quote, err
		}
		wait = min(wait, retryAfterOf(err))
		if fault == nil || errors.Is(fault, swap.ErrRouterUnavailable) && !errors.Is(err, swap.ErrRouterUnavailable) {
			fault = err
		}
	}
	return nil, withRetryAfter(fault, wait)
}

// named returns the router with that name.
func (r *Routers) named(name string) (*Client, error) {
	for _, c := range r.clients {
		if c.name == name {
			return c, nil
		}
	}
	return nil, errors.New("quote of a router that is not configured: expected one that Quote gave")
}

// retryAfterOf returns the wait that an error asks for; 0 for none.
func retryAfterOf(err error) time.Duration {
	var unavailable *swap.RouterUnavailable
	if errors.As(err, &unavailable) {
		return unavailable.RetryAfter
	}
	return 0
}

// withRetryAfter returns the error with the given wait. Only a *swap.RouterUnavailable has a
// wait; withRetryAfter returns any other error unchanged.
func withRetryAfter(err error, wait time.Duration) error {
	var unavailable *swap.RouterUnavailable
	if !errors.As(err, &unavailable) {
		return err
	}
	changed := *unavailable
	changed.RetryAfter = wait
	return &changed
}

// anotherMayQuote reports whether another router may give a quote after one router returned this
// error. After an invalid request, no router gives a quote. After a route that is too large, the
// caller asks again, for a narrower route.
func anotherMayQuote(err error) bool {
	var noRoute *swap.NoRoute
	var rejected *swap.RejectedRoute
	if errors.As(err, &noRoute) {
		return noRoute.Code != swap.CodeTooLarge
	}
	return errors.As(err, &rejected) || errors.Is(err, swap.ErrRouterUnavailable)
}

// Instructions asks the router that gave the quote. If there are several routers, the error
// asks for no wait, because the next quote can come from another router.
func (r *Routers) Instructions(ctx context.Context, q *swap.Quote, user solana.PublicKey) (*swap.Instructions, error) {
	c, err := r.named(q.Router)
	if err != nil {
		return nil, err
	}
	ix, err := c.Instructions(ctx, q, user)
	if len(r.clients) > 1 {
		err = withRetryAfter(err, 0)
	}
	return ix, err
}

// Len is the number of routers.
func (r *Routers) Len() int { return len(r.clients) }

// Failing reports for each router, by its name, whether it fails. A router fails if calls to it are
// skipped because the last calls failed, and a swap has needed it within two minutes.
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
