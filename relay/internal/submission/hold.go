package submission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/refusal"
)

// held marks a reason that is the deployment's and not the submission's: it
// waits, and says what for. With whole set, all submissions wait for the same.
type held struct {
	reason string
	whole  bool
	cause  error
	// pause is when it is tried again; 0 for Timing.Hold.
	pause time.Duration
}

func (h *held) Error() string { return "held: " + h.reason + ": " + h.cause.Error() }
func (h *held) Unwrap() error { return h.cause }

// patientTries is after how many failures in a row to reach the chain a
// submission counts as held by it rather than as unlucky.
const patientTries = 3

// holdUnready tells a pool, chain or payer that is not ready from other
// errors: the submission waits, whatever the cause. What refuses one submission
// refuses all, but for a cap, which may be that of transfers alone, and a call
// that failed, which says nothing about the next.
func holdUnready(c *Claimed, err error) error {
	r, ok := refusal.As(err)
	switch {
	case !ok || r.Code == refusal.DatabaseUnavailable:
		return err
	case r.Code == refusal.ChainUnavailable && c.Tries < patientTries:
		return err
	default:
		whole := c.Kind != KindSettlement && (r.Code == refusal.FeePayerEmpty || r.Code == refusal.PoolNotInitialised)
		return &held{reason: string(r.Code), whole: whole, cause: err}
	}
}

// holding is why the whole queue waits.
type holding struct {
	mu  sync.Mutex
	why string
}

// begin reports whether the queue was not held for that reason before.
func (h *holding) begin(reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.why != reason
	h.why = reason
	return changed
}

// end gives the reason that has ended; "" when there was none.
func (h *holding) end() (was string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, h.why = h.why, ""
	return was
}

func (h *holding) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// deafness is since when no endpoint has taken a transaction. An endpoint that is
// only submitted to may be gone, or its plan used up, while others are read: what
// is signed is then sent again and again, and more processes would not help.
type deafness struct {
	// least is for how long sends have to fail.
	least       time.Duration
	mu          sync.Mutex
	since, last time.Time
	failures    int
}

// sent tells what came of one send.
func (d *deafness) sent(now time.Time, err error) {
	unavailable := (*ledger.Unavailable)(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !errors.Is(err, ledger.ErrUnavailable): // taken, or refused by who could have taken it
		d.failures = 0
	case errors.As(err, &unavailable) && unavailable.Kind == ledger.KindBudget:
		// The relay itself left it out, for the sake of others.
	default:
		if d.lapsed(now) {
			d.failures = 0
		}
		if d.failures++; d.failures == 1 {
			d.since = now
		}
		d.last = now
	}
}

// heard tells that something landed: whatever the answer was, it was taken.
func (d *deafness) heard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = 0
}

// lasts reports whether several sends in a row have failed for long enough.
func (d *deafness) lasts(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failures >= patientTries && d.last.Sub(d.since) >= d.least && !d.lapsed(now)
}

// lapsed reports that nothing has failed for so long that nothing is known any more.
func (d *deafness) lapsed(now time.Time) bool { return now.Sub(d.last) >= 2*d.least }

var errDeaf = errors.New("no submit endpoint takes transactions")

// unheard is the error of a queue that waits for the submit endpoints; nil when
// they take transactions, as far as is known.
func (e *Engine) unheard() error {
	if e.deaf.lasts(e.Now()) {
		return errDeaf
	}
	return nil
}

// unread is why nothing can be read of the chain, which is given the time that one
// call may take: a slow chain is not one that is away.
func (e *Engine) unread(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	_, err := e.State.Tree(ctx, e.Timing.Poll)
	return err
}

// holdFor holds the queue when all of it waits for what one submission waits for.
func (e *Engine) holdFor(ctx context.Context, h *held) {
	if h.whole {
		e.holdAll(ctx, h.reason, h.cause)
	} else if h.reason == HoldChain {
		if err := e.unread(ctx); err != nil {
			e.holdAll(ctx, reasonOf(err), err)
		}
	}
}

func (e *Engine) holdAll(ctx context.Context, reason string, cause error) {
	if e.hold.begin(reason) {
		e.Log.WarnContext(ctx, "Held the queue", "reason", reason, "error", cause)
	}
}

// reasonOf is what a queue waits for when the pool cannot be read.
func reasonOf(err error) string {
	if r, ok := refusal.As(err); ok && r.Code == refusal.PoolNotInitialised {
		return string(r.Code)
	}
	return HoldChain
}

// watch looks at each sweep whether the queue has to be held or may go on. It is a
// loop of its own: a chain that hangs must not delay what is due or has landed.
func (e *Engine) watch(ctx context.Context) {
	misses := 0
	e.every(ctx, e.Timing.Sweep, func(ctx context.Context) {
		if e.hold.reason() != "" {
			misses = 0
			e.resume(ctx)
			return
		}
		misses = e.lookUp(ctx, misses)
	})
}

// lookUp holds the queue when nothing can be sent, or nothing read twice in a row.
// A process whose places are all taken by what it has sent tries nothing new, and
// would not notice: what waits behind would count as work for more processes.
func (e *Engine) lookUp(ctx context.Context, misses int) int {
	if err := e.unheard(); err != nil {
		e.holdAll(ctx, HoldChain, err)
		return 0
	}
	if !e.more.Load() {
		return 0
	}
	err := e.unread(ctx)
	if err == nil || ctx.Err() != nil {
		return 0
	}
	if misses++; misses < 2 {
		return misses
	}
	e.holdAll(ctx, reasonOf(err), fmt.Errorf("read the pool: %w", err))
	return 0
}

// resume ends a hold whose reason is gone.
func (e *Engine) resume(ctx context.Context) {
	var err error
	switch refusal.Code(e.hold.reason()) {
	case refusal.FeePayerEmpty:
		call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
		defer cancel()
		err = e.Payers.Ready(call, 2*nullifierRent+signatureFee)
	case refusal.PoolNotInitialised, refusal.ChainUnavailable:
		err = e.unread(ctx)
	default:
		return
	}
	switch deaf := e.unheard(); {
	case err != nil:
	case deaf != nil: // the reason is gone, and there is another
		e.holdAll(ctx, HoldChain, deaf)
	default:
		e.resumed(ctx)
	}
}

// resumed tells that the queue goes on.
func (e *Engine) resumed(ctx context.Context) {
	if was := e.hold.end(); was != "" {
		e.Log.InfoContext(ctx, "Resumed the queue", "reason", was)
		e.Nudge()
	}
}
