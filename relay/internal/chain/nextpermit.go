package chain

import (
	"context"
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
)

// breakerWait is how long a read waits for a breaker to close when all are open.
const breakerWait = time.Second

// awaitBreaker waits until one of the candidates may be tried, but at most until the deadline. It
// returns false when the deadline had already passed, or the context ended.
func (e *Endpoints) awaitBreaker(ctx context.Context, candidates []*endpoint, deadline time.Time) bool {
	changed := e.breakerChange.next()
	wait := deadline.Sub(e.now())
	if wait <= 0 {
		return false
	}
	for _, ep := range candidates {
		wait = min(wait, ep.breaker.Next())
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// withNextPermit returns a copy of an error of several endpoints, with the time after which one of
// them may be asked again. It is a copy because other calls may share the error.
func withNextPermit(err error, candidates []*endpoint) error {
	var u *onchain.Unavailable
	if !errors.As(err, &u) {
		return err
	}
	c := *u
	c.RetryAfter = nextPermit(candidates)
	return &c
}

// nextPermit returns the time until one of the endpoints may be asked; 0 when one may be asked now
// or is being probed. The time includes a pause that an endpoint asked for.
func nextPermit(candidates []*endpoint) time.Duration {
	soonest := maxPause
	for _, ep := range candidates {
		if ep.breaker.State() == outbound.HalfOpen {
			return 0
		}
		soonest = min(soonest, ep.breaker.Next())
	}
	return soonest
}
