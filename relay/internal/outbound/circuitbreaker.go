// Package outbound limits calls to other services: a circuit breaker for a failing service, and a
// budget of requests for one with a rate limit. The package makes no call itself.
package outbound

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// State is the state of a breaker.
type State string

// A closed breaker permits every call. An open one permits none until its delay has passed.
// A half-open one waits for the outcome of one probe.
const (
	Closed   State = "closed"
	HalfOpen State = "half_open"
	Open     State = "open"
)

// Outcome is what a call shows about the endpoint.
type Outcome int

// The outcomes.
const (
	// NoOutcome: the call shows nothing, because the caller stopped waiting, or the call was not
	// made.
	NoOutcome Outcome = iota
	// Reachable: the endpoint answered, but the answer shows nothing about its health. For
	// example, the endpoint has not reached the requested slot yet.
	Reachable
	// Good: the endpoint answered the call as it should.
	Good
	// Bad: the endpoint did not answer, or its answer shows that it does not work.
	Bad
)

// BreakerOptions configure a Breaker. Now and Rand are required; every other
// field has a default.
type BreakerOptions struct {
	// Now is the clock; Rand gives numbers from 0 to below 1 for the jitter.
	Now  func() time.Time
	Rand func() float64
	// Consecutive is the number of bad calls in a row that opens the breaker; 0 means 5.
	Consecutive int
	// Rate is the share of bad calls that opens the breaker. Only the last Window calls count, and
	// of these only the calls younger than Recent. Fewer than MinCalls such calls do not open the
	// breaker. 0 means 0.5 for Rate, 20 for Window, 10 for MinCalls and 30 s for Recent.
	Rate             float64
	Window, MinCalls int
	Recent           time.Duration
	// Delay is how long the breaker stays open the first time, plus jitter of up to 30 %. It
	// doubles with every failed probe up to MaxDelay. 0 means 500 ms for Delay and 5 s for
	// MaxDelay.
	Delay, MaxDelay time.Duration
	// Changed is called with every change of state, outside the breaker's lock. Nil for none.
	Changed func(from, to State)
}

const (
	defaultConsecutive = 5
	defaultRate        = 0.5
	defaultWindow      = 20
	defaultMinCalls    = 10
	defaultRecent      = 30 * time.Second
	defaultDelay       = 500 * time.Millisecond
	defaultMaxDelay    = 5 * time.Second

	jitter = 0.3
)

// orDefault returns v, or its default when v is zero.
func orDefault[T comparable](v, byDefault T) T {
	if v == *new(T) {
		return byDefault
	}
	return v
}

// Breaker stops calls to a failing endpoint. It opens after a number of failures in a row
// or at a rate of failures among recent calls. After a delay it permits one call as a
// probe, whose outcome closes the breaker or opens it again. failsafe-go's breaker is not used:
// it has only one of the two rules at a time, has no jitter, and does not free a probe's permit
// when the caller stops waiting. Safe for concurrent use.
type Breaker struct {
	o BreakerOptions

	mu       sync.Mutex
	state    State
	streak   int // bad calls in a row
	recent   []recentCall
	delay    time.Duration // of the last opening, without jitter
	until    time.Time     // when an open breaker may be probed
	openedAt time.Time
	closedAt time.Time
}

type recentCall struct {
	at  time.Time
	bad bool
}

// NewBreaker makes a closed breaker.
func NewBreaker(o BreakerOptions) (*Breaker, error) {
	if o.Now == nil || o.Rand == nil {
		return nil, errors.New("breaker needs a clock and a source of random numbers")
	}
	o.Consecutive, o.Window, o.MinCalls = orDefault(o.Consecutive, defaultConsecutive), orDefault(o.Window, defaultWindow), orDefault(o.MinCalls, defaultMinCalls)
	o.Rate, o.Recent = orDefault(o.Rate, defaultRate), orDefault(o.Recent, defaultRecent)
	o.Delay, o.MaxDelay = orDefault(o.Delay, defaultDelay), orDefault(o.MaxDelay, defaultMaxDelay)
	switch {
	case o.Consecutive < 0 || o.Window < 0 || o.MinCalls < 0 || o.Rate < 0 || o.Recent < 0:
		return nil, errors.New("a threshold of the breaker is negative: expected positive values, or 0 for the default")
	case o.Delay < 0 || o.MaxDelay < o.Delay:
		return nil, fmt.Errorf("breaker's delay is %s and its maximum %s: expected positive durations, and a maximum not below the delay", o.Delay, o.MaxDelay)
	case o.MinCalls > o.Window:
		return nil, fmt.Errorf("breaker needs at least %d calls in a window of %d: expected no more than the window", o.MinCalls, o.Window)
	}
	if o.Changed == nil {
		o.Changed = func(State, State) {}
	}
	return &Breaker{o: o, state: Closed}, nil
}

// Permit is the permission for one call. Done must be called, once.
type Permit struct {
	b *Breaker
	// probe marks the call that a half-open breaker waits for.
	probe bool
	at    time.Time
}

// Try permits every call while the breaker is closed. When the delay of an open breaker has passed,
// Try permits one call as the probe.
func (b *Breaker) Try() (Permit, bool) {
	b.mu.Lock()
	now := b.o.Now()
	switch {
	case b.state == Closed:
		b.mu.Unlock()
		return Permit{b: b, at: now}, true
	case b.state == Open && !now.Before(b.until):
		notify := b.setState(HalfOpen)
		b.mu.Unlock()
		notify()
		return Permit{b: b, probe: true, at: now}, true
	default:
		b.mu.Unlock()
		return Permit{}, false
	}
}

// Force permits a call in every state. The call is the probe when one is due.
func (b *Breaker) Force() Permit {
	if p, ok := b.Try(); ok {
		return p
	}
	return Permit{b: b, at: b.o.Now()}
}

// IsProbe reports whether a half-open breaker waits for the call.
func (p Permit) IsProbe() bool { return p.probe }

// Done records the outcome of the call.
func (p Permit) Done(o Outcome) {
	b := p.b
	b.mu.Lock()
	notify := b.done(p, o)
	b.mu.Unlock()
	notify()
}

func (b *Breaker) done(p Permit, o Outcome) (notify func()) {
	now := b.o.Now()
	switch {
	case o == NoOutcome:
		if p.probe && b.state == HalfOpen {
			// The probe showed nothing: the next call may be the probe.
			return b.setState(Open)
		}
	case b.state == Closed:
		if o != Reachable {
			return b.count(now, o == Bad)
		}
	case p.probe && o == Bad:
		return b.open(now, min(2*b.delay, b.o.MaxDelay))
	case p.probe || (o == Good && p.at.After(b.openedAt)):
		// A good call that was forced through the open breaker counts as a successful probe.
		return b.close(now)
	}
	return func() {}
}

// count records the outcome of a call of a closed breaker.
func (b *Breaker) count(now time.Time, bad bool) (notify func()) {
	b.recent = append(b.recent, recentCall{now, bad})
	if len(b.recent) > b.o.Window {
		b.recent = b.recent[1:]
	}
	if !bad {
		b.streak = 0
		return func() {}
	}
	b.streak++
	var calls, failed int
	for _, r := range b.recent {
		if now.Sub(r.at) > b.o.Recent {
			continue
		}
		calls++
		if r.bad {
			failed++
		}
	}
	if b.streak < b.o.Consecutive && (calls < b.o.MinCalls || float64(failed) < b.o.Rate*float64(calls)) {
		return func() {}
	}
	delay := b.o.Delay
	if b.delay > 0 && now.Sub(b.closedAt) < b.o.MaxDelay {
		// The endpoint failed again soon after the breaker closed, so the delay grows as
		// after a failed probe.
		delay = min(2*b.delay, b.o.MaxDelay)
	}
	return b.open(now, delay)
}

// Pause opens the breaker for d, or for maxPause if that is shorter, without jitter. It does not
// shorten a pause or delay that ends later. Use Pause when the endpoint asked for a pause.
func (b *Breaker) Pause(d, maxPause time.Duration) {
	b.mu.Lock()
	now := b.o.Now()
	until := now.Add(min(d, maxPause))
	if d <= 0 || (b.state != Closed && !until.After(b.until)) {
		b.mu.Unlock()
		return
	}
	notify := func() {}
	if b.state != Open {
		notify = b.open(now, max(b.delay, b.o.Delay))
	}
	b.until = until
	b.mu.Unlock()
	notify()
}

func (b *Breaker) open(now time.Time, delay time.Duration) (notify func()) {
	b.delay, b.openedAt = delay, now
	b.until = now.Add(time.Duration(float64(delay) * (1 + jitter*b.o.Rand())))
	return b.setState(Open)
}

func (b *Breaker) close(now time.Time) (notify func()) {
	b.closedAt, b.streak, b.recent = now, 0, nil
	return b.setState(Closed)
}

// setState changes the state, under the lock. It returns a function that reports the change. Call
// that function outside the lock.
func (b *Breaker) setState(to State) (notify func()) {
	from := b.state
	if from == to {
		return func() {}
	}
	b.state = to
	return func() { b.o.Changed(from, to) }
}

// State returns the state.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Next returns the time until Try may permit a call; 0 when it may do so now. While a probe is
// under way, Next returns MaxDelay, because the probe's end is unknown.
func (b *Breaker) Next() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case Closed:
		return 0
	case HalfOpen:
		return b.o.MaxDelay
	default:
		return max(0, b.until.Sub(b.o.Now()))
	}
}
