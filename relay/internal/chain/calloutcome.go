package chain

import (
	"context"
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

// hangAfter is the least duration of a hanging call. If a caller's deadline ends a shorter call,
// that shows nothing about the endpoint.
const hangAfter = time.Second

// recordResult updates the endpoint's health from a call's outcome, and releases the permit.
func (e *Endpoints) recordResult(ep *endpoint, permit outbound.Permit, method string, took time.Duration, best uint64, err error) {
	now := e.now()
	outcome, kind, pause := outbound.Good, "", time.Duration(0)
	var u *onchain.Unavailable
	switch {
	case errors.As(err, &u):
		outcome, kind, pause = breakerOutcome(u, took, permit.IsProbe()), u.Kind, u.RetryAfter
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
func breakerOutcome(u *onchain.Unavailable, took time.Duration, probe bool) outbound.Outcome {
	if u.Shared && !probe { // one failure counts once
		return outbound.NoOutcome
	}
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
