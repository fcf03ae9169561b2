package outbound

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ErrBudget reports that no request became available in time.
var ErrBudget = errors.New("request budget is exhausted")

// Urgency is how urgent a call is to the relay.
type Urgency int

// The urgencies, the most urgent first.
const (
	// FirstSend is the first send of a transaction. It reserves the next available request, so
	// that later calls cannot take that one.
	FirstSend Urgency = iota
	// Read is a read that a submission waits for.
	Read
	// Rebroadcast repeats an earlier send.
	Rebroadcast
	// Background is a read that no submission waits for.
	Background
)

// reservedShare returns the share of the burst that a call of the urgency leaves to more urgent
// calls.
func (u Urgency) reservedShare() float64 {
	switch u {
	case FirstSend, Read:
		return 0
	case Rebroadcast:
		return 0.25
	default:
		return 0.5
	}
}

// Budget bounds the requests a second to an endpoint. It permits a burst of as many requests as
// one second allows. Safe for concurrent use.
type Budget struct {
	now func() time.Time

	mu      sync.Mutex
	limiter *rate.Limiter
}

// NewBudget makes a budget of perSecond requests a second; 0 is unlimited.
func NewBudget(perSecond float64, now func() time.Time) (*Budget, error) {
	switch {
	case now == nil:
		return nil, errors.New("budget needs a clock")
	case perSecond < 0 || math.IsNaN(perSecond) || math.IsInf(perSecond, 0):
		return nil, fmt.Errorf("requests a second are %g: expected a positive number, or 0 for no limit", perSecond)
	case perSecond == 0:
		return &Budget{now: now}, nil
	}
	return &Budget{now: now, limiter: rate.NewLimiter(rate.Limit(perSecond), int(math.Ceil(perSecond)))}, nil
}

// Try takes a request if one is available for the urgency now.
func (b *Budget) Try(u Urgency) bool { return b.try(u) == 0 }

// HasRoom reports whether Try would take a request.
func (b *Budget) HasRoom(u Urgency) bool {
	if b.limiter == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missing(u, b.now()) <= 0
}

// Wait takes a request, and waits up to maxWait for it. It fails with ErrBudget when none
// becomes available in time, and with the context's error when the caller stopped waiting.
func (b *Budget) Wait(ctx context.Context, u Urgency, maxWait time.Duration) error {
	deadline := b.now().Add(maxWait)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if u == FirstSend {
		return b.reserveAndWait(ctx, deadline)
	}
	for {
		wait := b.try(u)
		if wait == 0 {
			return nil
		}
		if b.now().Add(wait).After(deadline) {
			return ErrBudget
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// reserveAndWait reserves the next request, and waits until that request is available.
func (b *Budget) reserveAndWait(ctx context.Context, deadline time.Time) error {
	if b.limiter == nil {
		return ctx.Err()
	}
	now := b.now()
	b.mu.Lock()
	r := b.limiter.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if now.Add(wait).After(deadline) {
		r.CancelAt(now)
		b.mu.Unlock()
		return ErrBudget
	}
	b.mu.Unlock()
	if wait == 0 {
		return ctx.Err()
	}
	return sleep(ctx, wait)
}

// try takes a request and returns 0, or returns the time until a request may be available.
func (b *Budget) try(u Urgency) time.Duration {
	if b.limiter == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if missing := b.missing(u, now); missing > 0 {
		seconds := missing / float64(b.limiter.Limit())
		return max(time.Duration(seconds*float64(time.Second)), time.Millisecond)
	}
	b.limiter.AllowN(now, 1)
	return 0
}

// missing returns how many requests the budget lacks for one call of the urgency; 0 or less when
// the call can be made now.
func (b *Budget) missing(u Urgency, now time.Time) float64 {
	need := 1 + u.reservedShare()*float64(b.limiter.Burst()-1)
	return need - b.limiter.TokensAt(now)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
