package admission

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// maxWaiting is the number of requests that may wait for the chain. Each of them occupies a
	// connection, and all of them call the chain when it is back. Further requests do not wait:
	// the client gets the refusal of the first try.
	maxWaiting = 256
	// retryDelay is the delay after the first try. Each further delay is twice as long, up to
	// retryMaxDelay.
	retryDelay    = 250 * time.Millisecond
	retryMaxDelay = 2 * time.Second
	// retryJitter bounds the random extension of a delay, as a fraction of the delay. Because of
	// the extension, requests that failed together do not call the chain together again.
	retryJitter = 0.5
	// confirmTimeout is longer than blocks usually take to be confirmed. A request whose root is processed
	// waits so long even if its client does not want to wait: the relay told the client that root.
	confirmTimeout = 2 * time.Second
)

// chainWaits are the requests that wait for a chain that is unavailable for a moment.
type chainWaits struct {
	now    func() time.Time
	random func() float64 // from 0 to below 1
	// callTimeout bounds each try, so that a chain that hangs leaves time for further tries.
	callTimeout time.Duration

	mu      sync.Mutex
	waiting int

	closing chan struct{}
	closed  sync.Once
}

// retry calls try until the chain answers, or until wait has passed. It returns try's last
// error, or the context's error if the client disconnected during a delay. It repeats try only
// while the chain is unavailable for a moment, and returns any other error immediately.
func (w *chainWaits) retry(ctx context.Context, wait time.Duration, try func(context.Context) error) error {
	began := w.now()
	after, momentary, err := w.once(ctx, try)
	if errors.Is(err, errRootNotConfirmed) {
		wait = max(wait, confirmTimeout)
	}
	deadline := began.Add(wait)
	if wait <= 0 || !momentary || !w.enter() {
		return err
	}
	defer w.leave()
	for delay := retryDelay; momentary; delay = min(2*delay, retryMaxDelay) {
		remaining := deadline.Sub(w.now())
		if remaining <= 0 || after >= remaining { // the endpoint asks for a longer delay than the client allows
			return err
		}
		extended := time.Duration(float64(max(delay, after)) * (1 + retryJitter*w.random()))
		if !w.sleep(ctx, min(extended, remaining)) {
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return err
		}
		after, momentary, err = w.once(ctx, try)
	}
	return err
}

// once calls try with a time limit. It returns the results of retryAfter and the error of try.
// momentary is also true when the time limit ended a call to the chain.
func (w *chainWaits) once(ctx context.Context, try func(context.Context) error) (after time.Duration, momentary bool, err error) {
	limited, cancel := context.WithTimeout(ctx, w.callTimeout)
	defer cancel()
	err = try(limited)
	if after, momentary = retryAfter(err); momentary || ctx.Err() != nil || limited.Err() == nil {
		return after, momentary, err
	}
	refused, ok := refusal.As(err)
	return 0, ok && refused.Code == refusal.ChainUnavailable && errors.Is(err, context.DeadlineExceeded), err
}

// retryAfter reports whether the same request may be accepted in a moment, because the chain
// did not answer. The duration is the delay that the endpoints ask for; 0 when they ask for
// none. The refusal chain_unavailable can also be caused by an error of the relay itself, of a
// transaction, or of an endpoint that refuses the call. For these errors retryAfter returns false,
// because they do not pass in a moment.
func retryAfter(err error) (time.Duration, bool) {
	refused, ok := refusal.As(err)
	if !ok || refused.Code != refusal.ChainUnavailable {
		return 0, false
	}
	var unavailable *onchain.Unavailable
	if errors.As(refused.Cause, &unavailable) {
		return unavailable.RetryAfter, onchain.Transient(unavailable)
	}
	return 0, refused.Cause == nil || errors.Is(refused.Cause, onchain.ErrUnavailable)
}

// sleep waits for d. It returns false if the client disconnects or the relay stops before that.
func (w *chainWaits) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-w.closing:
		return false
	case <-timer.C:
		return true
	}
}

// enter adds a request to those that wait. It returns false when maxWaiting requests wait already.
func (w *chainWaits) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting >= maxWaiting {
		return false
	}
	w.waiting++
	return true
}

func (w *chainWaits) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting--
}

// Waiting returns how many requests wait for the chain.
func (a *Admission) Waiting() int {
	a.waits.mu.Lock()
	defer a.waits.mu.Unlock()
	return a.waits.waiting
}

// Close ends all waits for the chain; later requests do not wait. The clients can send their
// requests to another relay.
func (a *Admission) Close() { a.waits.closed.Do(func() { close(a.waits.closing) }) }
