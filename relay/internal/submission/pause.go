package submission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// heldError marks a reason that is the deployment's and not the submission's: it
// waits, and says what for. With whole set, all submissions wait for the same.
type heldError struct {
	reason      string
	pausesQueue bool
	cause       error
	// retryAfter is when it is tried again; 0 for Timing.Hold.
	retryAfter time.Duration
}

func (h *heldError) Error() string { return "held: " + h.reason + ": " + h.cause.Error() }
func (h *heldError) Unwrap() error { return h.cause }

// triesBeforeHold is after how many failures in a row to reach the chain a
// submission counts as held by it rather than as unlucky.
const triesBeforeHold = 3

// heldByRefusal tells a pool, chain or payer that is not ready from other
// errors: the submission waits, whatever the cause. What refuses one submission
// refuses all, but for a cap, which may be that of transfers alone, and a call
// that failed, which says nothing about the next.
func heldByRefusal(c *Claimed, err error) error {
	r, ok := refusal.As(err)
	switch {
	case !ok || r.Code == refusal.DatabaseUnavailable:
		return err
	case r.Code == refusal.ChainUnavailable && c.Tries < triesBeforeHold:
		return err
	default:
		whole := c.Kind != KindSwapExecution && (r.Code == refusal.FeePayerEmpty || r.Code == refusal.PoolNotInitialised)
		return &heldError{reason: string(r.Code), pausesQueue: whole, cause: err}
	}
}

// queuePause is why the whole queue waits.
type queuePause struct {
	mu      sync.Mutex
	current string
}

// set reports whether the queue was not held for that reason before.
func (h *queuePause) set(reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.current != reason
	h.current = reason
	return changed
}

// clear gives the reason that has ended; "" when there was none.
func (h *queuePause) clear() (was string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, h.current = h.current, ""
	return was
}

func (h *queuePause) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// sendOutage is since when no endpoint has taken a transaction. An endpoint that is
// only submitted to may be gone, or its plan used up, while others are read: what
// is signed is then sent again and again, and more processes would not help.
type sendOutage struct {
	// minDuration is for how long sends have to fail.
	minDuration time.Duration
	mu          sync.Mutex
	since, last time.Time
	failures    int
}

// observe tells what came of one send.
func (d *sendOutage) observe(now time.Time, err error) {
	unavailable := (*ledger.Unavailable)(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !errors.Is(err, ledger.ErrUnavailable): // taken, or refused by who could have taken it
		d.failures = 0
	case errors.As(err, &unavailable) && unavailable.Kind == ledger.KindBudget:
		// The relay itself left it out, for the sake of others.
	default:
		if d.outdated(now) {
			d.failures = 0
		}
		if d.failures++; d.failures == 1 {
			d.since = now
		}
		d.last = now
	}
}

// reset tells that something landed: whatever the answer was, it was taken.
func (d *sendOutage) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = 0
}

// ongoing reports whether several sends in a row have failed for long enough.
func (d *sendOutage) ongoing(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failures >= triesBeforeHold && d.last.Sub(d.since) >= d.minDuration && !d.outdated(now)
}

// outdated reports that nothing has failed for so long that nothing is known any more.
func (d *sendOutage) outdated(now time.Time) bool { return now.Sub(d.last) >= 2*d.minDuration }

var errNoSubmitEndpoint = errors.New("no submit endpoint takes transactions")

// submitOutage is the error of a queue that waits for the submit endpoints; nil when
// they take transactions, as far as is known.
func (e *Engine) submitOutage() error {
	if e.outage.ongoing(e.Now()) {
		return errNoSubmitEndpoint
	}
	return nil
}

// poolUnreadable is why nothing can be read of the chain, which is given the time that one
// call may take: a slow chain is not one that is away.
func (e *Engine) poolUnreadable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	_, err := e.State.Tree(ctx, e.Timing.Poll)
	return err
}

// pauseFor holds the queue when all of it waits for what one submission waits for.
func (e *Engine) pauseFor(ctx context.Context, h *heldError) {
	if h.pausesQueue {
		e.pauseQueue(ctx, h.reason, h.cause)
	} else if h.reason == HoldChain {
		if err := e.poolUnreadable(ctx); err != nil {
			e.pauseQueue(ctx, pauseReason(err), err)
		}
	}
}

func (e *Engine) pauseQueue(ctx context.Context, reason string, cause error) {
	if e.paused.set(reason) {
		e.Log.WarnContext(ctx, "queue paused", "reason", reason, "error", cause)
	}
}

// pauseReason is what a queue waits for when the pool cannot be read.
func pauseReason(err error) string {
	if r, ok := refusal.As(err); ok && r.Code == refusal.PoolNotInitialised {
		return string(r.Code)
	}
	return HoldChain
}

// pauseLoop looks at each sweep whether the queue has to be held or may go on. It is a
// loop of its own: a chain that hangs must not delay what is due or has landed.
func (e *Engine) pauseLoop(ctx context.Context) {
	misses := 0
	e.every(ctx, e.Timing.Sweep, func(ctx context.Context) {
		if e.paused.reason() != "" {
			misses = 0
			e.tryResume(ctx)
			return
		}
		misses = e.checkPause(ctx, misses)
	})
}

// checkPause holds the queue when nothing can be sent, or nothing read twice in a row.
// A process whose places are all taken by what it has sent tries nothing new, and
// would not notice: what waits behind would count as work for more processes.
func (e *Engine) checkPause(ctx context.Context, misses int) int {
	if err := e.submitOutage(); err != nil {
		e.pauseQueue(ctx, HoldChain, err)
		return 0
	}
	if !e.mayClaimMore.Load() {
		return 0
	}
	err := e.poolUnreadable(ctx)
	if err == nil || ctx.Err() != nil {
		return 0
	}
	if misses++; misses < 2 {
		return misses
	}
	e.pauseQueue(ctx, pauseReason(err), fmt.Errorf("read the pool: %w", err))
	return 0
}

// tryResume ends a hold whose reason is gone.
func (e *Engine) tryResume(ctx context.Context) {
	var err error
	switch refusal.Code(e.paused.reason()) {
	case refusal.FeePayerEmpty:
		call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
		defer cancel()
		err = e.Payers.Ready(call, 2*shieldpool.RentExempt+shieldpool.SignatureFee)
	case refusal.PoolNotInitialised, refusal.ChainUnavailable:
		err = e.poolUnreadable(ctx)
	default:
		return
	}
	switch outage := e.submitOutage(); {
	case err != nil:
	case outage != nil: // the reason is gone, and there is another
		e.pauseQueue(ctx, HoldChain, outage)
	default:
		e.resumeQueue(ctx)
	}
}

// resumeQueue tells that the queue goes on.
func (e *Engine) resumeQueue(ctx context.Context) {
	if was := e.paused.clear(); was != "" {
		e.Log.InfoContext(ctx, "queue resumed", "reason", was)
		e.ClaimSoon()
	}
}
