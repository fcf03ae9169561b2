package router

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// defaultParallel is how many calls of a router one process makes at once.
const defaultParallel = 16

// admit waits until the limit of concurrent calls and the budget allow one more call, and asks
// the breaker. After the call, its caller frees the capacity with leave, and releases the permit
// with recordResult.
func (c *Client) admit(parent context.Context) (permit outbound.Permit, leave func(), fault *swap.RouterUnavailable) {
	ctx, cancel := context.WithTimeout(parent, c.timeout)
	defer cancel()
	c.calledAt.Store(c.now().UnixNano())
	leave = func() { <-c.inFlight }
	select {
	case c.inFlight <- struct{}{}:
	case <-ctx.Done():
		return permit, nil, notSent(parent, "too many calls are under way")
	}
	permit, ok := c.breaker.Try()
	if !ok {
		leave()
		return permit, nil, &swap.RouterUnavailable{Kind: swap.FaultBreakerOpen, Detail: "its last calls failed; the relay tries again soon", RetryAfter: c.breaker.Next()}
	}
	if why := c.awaitBudget(ctx); why != "" {
		permit.Done(outbound.NoOutcome)
		leave()
		return permit, nil, notSent(parent, why)
	}
	return permit, leave, nil
}

// minBudgetWait is the least pause before the budget is asked again.
const minBudgetWait = 5 * time.Millisecond

// awaitBudget waits until the budget allows one more call, and returns "". If the budget does
// not allow the call in time, awaitBudget returns the reason.
func (c *Client) awaitBudget(ctx context.Context) (why string) {
	const spent = "the budget of requests a second is spent"
	for c.take != nil {
		wait, err := c.take(ctx)
		switch {
		case err != nil:
			return "the budget of requests a second could not be read"
		case wait == 0:
			return ""
		}
		wait = max(wait, minBudgetWait)
		if deadline, ok := ctx.Deadline(); ok && deadline.Sub(c.now()) < wait {
			return spent
		}
		select {
		case <-ctx.Done():
			return spent
		case <-time.After(wait):
		}
	}
	return ""
}

// notSent is the error of a call that was not made for lack of capacity.
func notSent(parent context.Context, why string) *swap.RouterUnavailable {
	if parent.Err() != nil {
		return contextEnded(parent)
	}
	return &swap.RouterUnavailable{Kind: swap.FaultBusy, Detail: why}
}
