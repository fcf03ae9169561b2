package admission

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// leavesPerSubmission is the number of leaves that a submission appends, and so the number of
	// roots that it evicts from the root history.
	leavesPerSubmission = 2
	// queueCountMaxAge is how long a count of all relays' queued submissions is used before they
	// are counted again. Meanwhile the submissions that this process accepts are added to it.
	queueCountMaxAge = 100 * time.Millisecond
	// poolBusyRetryAfter is the Retry-After of a busy pool. By then some submissions have landed,
	// because one or two slots are enough for that.
	poolBusyRetryAfter = time.Second
)

// checkQueue refuses a submission when the submissions ahead of it would evict its root from
// the root history. If it were accepted, it would wait, with its notes reserved, and then fail
// with a stale root.
func (a *Admission) checkQueue(ctx context.Context, w rootWindow) error {
	if !w.known {
		return nil
	}
	most := w.untilEviction / leavesPerSubmission
	if n, ok := a.queue.recent(a.Now()); ok && n <= most {
		return nil
	}
	// The count of all queued submissions serves the next requests too. Only if it is too large,
	// count the submissions that are really ahead.
	total, err := a.Store.CountAhead(ctx, a.Pool.Address, w.oldest, math.MaxInt64, most+1)
	if err != nil {
		return err
	}
	if total <= most {
		a.queue.set(total, a.Now())
		return nil
	}
	ahead, err := a.Store.CountAhead(ctx, a.Pool.Address, w.oldest, w.seq, most+1)
	if err != nil || ahead <= most {
		return err
	}
	return refusal.New(refusal.PoolBusy,
		"the pool is busy: %d submissions or more are ahead, and the proof's root leaves the pool's root history after %d: send the request again in a moment, proven against the newest root", ahead, most).
		Retry(poolBusyRetryAfter)
}

// queueLength caches the count of all relays' submissions that have not landed.
type queueLength struct {
	mu sync.Mutex
	n  int
	at time.Time
}

// recent returns the last count plus the submissions that this process accepted since then;
// false when the count is old.
func (q *queueLength) recent(now time.Time) (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n, !q.at.IsZero() && now.Sub(q.at) < queueCountMaxAge
}

func (q *queueLength) set(n int, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n, q.at = n, now
}

func (q *queueLength) increment() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n++
}
