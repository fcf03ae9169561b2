package admission

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// leavesPerSubmission is the number of leaves that a submission appends, and so the number of
	// roots that it evicts from the root history.
	leavesPerSubmission = 2
	// queueCountMaxAge is how long a count of all relays' queued submissions is used before the
	// submissions are counted again. Meanwhile this process adds what it accepts to the count.
	queueCountMaxAge = 100 * time.Millisecond
	// momentaryRetryAfter is the Retry-After of refusals whose cause passes in a moment, such as a
	// busy pool: some submissions land within one or two slots.
	momentaryRetryAfter = time.Second
)

// checkQueue refuses a submission when the submissions ahead of it would evict its root from
// the root history. If it were accepted, it would wait, with its notes reserved, and then fail
// with a stale root.
func (a *Admission) checkQueue(ctx context.Context, w rootWindow) error {
	if !w.known {
		return nil
	}
	maxAhead := w.untilEviction / leavesPerSubmission
	if n, ok := a.queue.recent(a.Now()); ok && n <= maxAhead {
		return nil
	}
	// The count of all queued submissions is kept for the next requests. Only if it is too large,
	// the submissions that are really ahead of this one are counted.
	total, err := a.countAhead(ctx, w, math.MaxInt64, maxAhead)
	if err != nil {
		return err
	}
	if total <= maxAhead {
		a.queue.set(total, a.Now())
		return nil
	}
	ahead, err := a.countAhead(ctx, w, w.seq, maxAhead)
	if err != nil || ahead <= maxAhead {
		return err
	}
	return submission.WithNewestRoot(refusal.New(refusal.PoolBusy,
		"the pool is busy: %d submissions or more are ahead, and the proof's root leaves the pool's root history after %d: send the request again in a moment, proven against the newest root", ahead, maxAhead).
		Retry(momentaryRetryAfter), w.tree)
}

// countAhead counts up to maxAhead+1 of the submissions that Store.CountAhead counts, without those that
// have landed up to the slot of the tree account. The database may still have them, but the tree
// account has their leaves, which would count twice.
func (a *Admission) countAhead(ctx context.Context, w rootWindow, seq uint64, maxAhead int) (int, error) {
	landed := func() int {
		return a.Submissions.Manager.LandedNotRecorded(w.slot, func(j *txmgr.Job) bool {
			return j.Kind != submission.KindSwapExecution && w.oldest <= submission.FromJob(j).RootSeq
		})
	}
	before := landed()
	n, err := a.Store.CountAhead(ctx, a.Pool.Address, w.oldest, seq, maxAhead+1+before)
	return n - min(n, before, landed()), err // what was recorded during the count may be missing in n
}

// queueLength caches the count of all relays' submissions that have not landed.
type queueLength struct {
	mu        sync.Mutex
	n         int
	countedAt time.Time
}

// recent returns the last count plus the submissions that this process accepted since then;
// false when the count is old.
func (q *queueLength) recent(now time.Time) (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n, !q.countedAt.IsZero() && now.Sub(q.countedAt) < queueCountMaxAge
}

func (q *queueLength) set(n int, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n, q.countedAt = n, now
}

func (q *queueLength) increment() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n++
}
