package chain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

const (
	// rounds is how many times a read asks each endpoint at most. A read that has made minCalls
	// calls fails at the end of the round, unless all failures of that round are those of nodes
	// that are behind.
	rounds   = 3
	minCalls = 3
	// retryDelay is the pause after the first round. It doubles with each further round, up to
	// retryMaxDelay.
	retryDelay    = 100 * time.Millisecond
	retryMaxDelay = time.Second
	retryJitter   = 0.3
	// maxPause bounds the pause that Retry-After may request.
	maxPause = 30 * time.Second
)

// askedEndpoint is an endpoint during one call.
type askedEndpoint struct {
	*rpc.Client
	index int
	// best is what slotAgreement.Best returned when the call began.
	best uint64
}

// query is a read that any endpoint with one of the roles can answer.
type query[T any] struct {
	// method is the RPC method. Its cost at each endpoint counts in the ranking of the endpoints.
	method  string
	urgency outbound.Urgency
	// roles are the roles of endpoints that can answer, in the order of preference.
	roles []Role
	// last is 1 + the index of an endpoint that is asked after all others; 0 for none.
	last int
	do   func(context.Context, askedEndpoint) (T, error)
	// slot returns the slot of the answer; nil when the answer has none. The answer is refused
	// if the chain cannot have reached that slot. unconfirmed marks a processed or a finalized
	// slot, which does not show how far the endpoint is behind.
	slot        func(T) uint64
	unconfirmed bool
	// unknown reports that the endpoint does not have what is asked for; another one may have it.
	// Nil when every answer counts.
	unknown func(T) bool
}

// isLast orders endpoints: 1 for the one that is asked after all others, 0 for these.
func (q query[T]) isLast(ep *endpoint) int {
	if ep.index+1 == q.last {
		return 1
	}
	return 0
}

// ask goes through the endpoints, the best first, until one answers.
func ask[T any](ctx context.Context, e *Endpoints, q query[T]) (T, error) {
	var none T
	deadline := e.now().Add(breakerWait)
	var calls int
	for round := 0; ; {
		candidates := e.candidates(q.roles, q.method, q.urgency)
		slices.SortStableFunc(candidates, func(a, b *endpoint) int { return q.isLast(a) - q.isLast(b) })
		failures := callFailures{method: q.method}
		for i, ep := range candidates {
			permit, ok := ep.breaker.Try()
			if !ok {
				failures.skipped++
				continue
			}
			v, err := attempt(ctx, e, ep, permit, q, len(candidates)-i)
			switch {
			case err == nil && (q.unknown == nil || !q.unknown(v)):
				return v, nil
			case err != nil && ctx.Err() != nil:
				return none, rpc.Ended(ctx, q.method)
			}
			failures.add(err)
			calls++
		}
		if len(candidates) == 0 {
			return none, &onchain.Unavailable{Method: q.method, Kind: onchain.KindRejected, Detail: "every RPC endpoint that could answer serves another chain: correct their URLs"}
		}
		if failures.n == 0 {
			if !e.awaitBreaker(ctx, candidates, deadline) {
				if ctx.Err() != nil {
					return none, rpc.Ended(ctx, q.method)
				}
				return none, &onchain.Unavailable{Method: q.method, Kind: onchain.KindBreakerOpen, Detail: "every endpoint that could answer failed its last calls; one is asked again in a moment", RetryAfter: nextPermit(candidates)}
			}
			continue
		}
		round++
		if !failures.transient() || round == rounds || (calls >= minCalls && !failures.behind()) {
			return none, withNextPermit(failures.err(), candidates)
		}
		if !sleep(ctx, backoff(round, e.rand())) {
			return none, rpc.Ended(ctx, q.method)
		}
	}
}

// askWithIndex is like ask, and also returns the index of the endpoint that answered.
func askWithIndex[T any](ctx context.Context, e *Endpoints, q query[T]) (v T, origin int, err error) {
	do := q.do
	q.do = func(ctx context.Context, source askedEndpoint) (T, error) {
		origin = source.index
		return do(ctx, source)
	}
	v, err = ask(ctx, e, q)
	return v, origin, err
}

// backoff returns the wait after a round in which every endpoint failed.
func backoff(round int, random float64) time.Duration {
	d := min(retryDelay<<(round-1), retryMaxDelay)
	return time.Duration(float64(d) * (1 + retryJitter*(2*random-1)))
}

// attempt asks one endpoint, and updates its health from the answer. remaining is the number of
// endpoints that can still be asked, this one included.
func attempt[T any](ctx context.Context, e *Endpoints, ep *endpoint, permit outbound.Permit, q query[T], remaining int) (T, error) {
	var v T
	start := e.now()
	best := e.slots.Best(start)
	limited, cancel := e.limit(ctx, q.method, remaining)
	defer cancel()
	err := e.verify(limited, ep)
	if err == nil {
		v, err = q.do(limited, askedEndpoint{Client: ep.clients[q.urgency], index: ep.index, best: best})
		err = ep.withEndpoint(err)
	}
	took := e.now().Sub(start)
	if err == nil && q.slot != nil {
		err = e.checkSlot(ep, q.method, q.slot(v), best, q.unconfirmed)
	}
	e.recordResult(ep, permit, q.method, took, best, err)
	return v, err
}

// limit bounds the duration of a call. If other endpoints could answer too, the call gets an equal
// share of the caller's remaining time, and at most two fifths of the timeout.
func (e *Endpoints) limit(ctx context.Context, method string, remaining int) (context.Context, context.CancelFunc) {
	if remaining <= 1 {
		return ctx, func() {}
	}
	most := rpc.Timeout(method, e.timeout*2/5)
	if deadline, ok := ctx.Deadline(); ok {
		most = min(most, deadline.Sub(e.now())/time.Duration(remaining))
	}
	return context.WithTimeoutCause(ctx, most, rpc.ErrLimit)
}

// withEndpoint puts the endpoint's name into the error.
func (ep *endpoint) withEndpoint(err error) error {
	var u *onchain.Unavailable
	var r *onchain.RPCError
	switch {
	case errors.As(err, &u):
		u.Endpoint = ep.name
	case errors.As(err, &r):
		r.Endpoint = ep.name
	}
	return err
}

// callFailures collects the calls of one round that brought no answer.
type callFailures struct {
	method   string
	n        int
	unknown  int // endpoints that do not have what is asked for
	skipped  int // endpoints that were not asked, as their breakers are open
	down     []*onchain.Unavailable
	definite error // the error that shows most about what was asked for; see add
}

func (a *callFailures) add(err error) {
	a.n++
	var u *onchain.Unavailable
	switch {
	case err == nil:
		a.unknown++
	case errors.As(err, &u):
		a.down = append(a.down, u)
	case a.definite == nil, errors.Is(err, onchain.ErrBlockPruned), errors.Is(err, onchain.ErrSlotSkipped) && !errors.Is(a.definite, onchain.ErrBlockPruned):
		// ErrBlockPruned proves more than ErrSlotSkipped, and ErrSlotSkipped proves more than a
		// refusal of the call.
		a.definite = err
	}
}

// transient reports whether asking again may bring an answer.
func (a *callFailures) transient() bool {
	return slices.ContainsFunc(a.down, isTransient)
}

func isTransient(u *onchain.Unavailable) bool { return onchain.Transient(u) }

// behind reports whether every failure was that of a node that has not reached the slot yet.
func (a *callFailures) behind() bool {
	return !slices.ContainsFunc(a.down, func(u *onchain.Unavailable) bool {
		return u.Kind != onchain.KindNodeBehind && u.Kind != onchain.KindNotYet
	})
}

// err returns why there is no answer; nil when the endpoints do not have what is asked for. If an
// endpoint was not asked, err returns an error, because that endpoint may have it.
func (a *callFailures) err() error {
	notFound := a.definite == nil || errors.Is(a.definite, onchain.ErrBlockPruned) || errors.Is(a.definite, onchain.ErrSlotSkipped)
	switch {
	case len(a.down) == 0 && a.skipped > 0 && notFound:
		return &onchain.Unavailable{Method: a.method, Kind: onchain.KindBreakerOpen, Detail: "an endpoint that may have the answer failed its last calls; it is asked again in a moment"}
	case len(a.down) == 1:
		return a.down[0]
	case len(a.down) > 1:
		// The first transient failure has priority, for example over a wrong URL. If none is
		// transient, the first failure has priority: it is the best endpoint's.
		first := a.down[max(0, slices.IndexFunc(a.down, isTransient))]
		all := &onchain.Unavailable{Method: a.method, Kind: first.Kind, Err: first.Err}
		details := make([]string, len(a.down))
		for i, u := range a.down {
			details[i] = u.Endpoint + ": " + u.Kind
			if u.Detail != "" {
				details[i] += ": " + u.Detail
			}
		}
		all.Detail = strings.Join(details, "; ")
		return all
	case a.unknown > 0:
		return nil
	default:
		return a.definite
	}
}
