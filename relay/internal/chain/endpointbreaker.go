package chain

import (
	"context"
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

const (
	// breakerWait is how long a read waits for a breaker to close when all are open.
	breakerWait = time.Second
	// hangAfter is the least duration of a hanging call. If a caller's deadline ends a shorter
	// call, that shows nothing about the endpoint.
	hangAfter = time.Second
)

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

// recordResult updates the endpoint's health from a call's outcome, and releases the permit.
func (e *Endpoints) recordResult(ep *endpoint, permit outbound.Permit, method string, took time.Duration, best uint64, err error) {
	now := e.now()
	outcome, kind, pause := outbound.Good, "", time.Duration(0)
	var u *onchain.Unavailable
	switch {
	case errors.As(err, &u):
		outcome, kind, pause = breakerOutcome(u, took), u.Kind, u.RetryAfter
		if u.Kind == onchain.KindNodeBehind && u.Slot > 0 && !ep.has(RoleLane) {
			e.slots.ObserveBehind(ep.index, u.Slot, best, now)
		}
	case rpc.ClassOf(err) == "refused":
		outcome = outbound.Reachable
	}
	if outcome != outbound.NoOutcome {
		ep.meter.Observe(method, took, outcome == outbound.Bad || kind == onchain.KindNodeBehind || kind == onchain.KindContradiction, now)
	}
	if kind != "" && outcome != outbound.NoOutcome {
		ep.mu.Lock()
		ep.lastError, ep.errorAt = kind, now
		ep.mu.Unlock()
	}
	permit.Done(outcome)
	if pause > 0 {
		ep.breaker.Pause(pause, maxPause)
	}
}

// breakerOutcome classifies a failed call for the endpoint's breaker.
func breakerOutcome(u *onchain.Unavailable, took time.Duration) outbound.Outcome {
	switch u.Kind {
	case onchain.KindCancelled:
		if errors.Is(u.Err, context.DeadlineExceeded) && took >= hangAfter {
			return outbound.Bad
		}
		return outbound.NoOutcome
	case onchain.KindBudget:
		return outbound.NoOutcome
	case onchain.KindNodeBehind, onchain.KindNotYet, onchain.KindContradiction:
		return outbound.Reachable
	default:
		return outbound.Bad
	}
}

func (e *Endpoints) breakerChanged(ep *endpoint, from, to outbound.State) {
	switch {
	case to == outbound.Open && from == outbound.Closed:
		ep.mu.Lock()
		kind := ep.lastError
		ep.mu.Unlock()
		e.log.Warn("rpc endpoint breaker opened", "endpoint", ep.name, "last_error", kind)
	case to == outbound.Closed:
		e.log.Info("rpc endpoint breaker closed", "endpoint", ep.name)
	}
	e.observer.BreakerChanged(ep.name, to)
	e.breakerChange.raise()
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
