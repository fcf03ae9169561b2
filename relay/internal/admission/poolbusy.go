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
	// momentaryRetryAfter is the Retry-After of refusals whose cause passes in a moment: some
	// submissions land within one or two slots.
	momentaryRetryAfter = time.Second
)

// checkQueue refuses a submission when the submissions ahead of it would evict its root from
// the root history. If it were accepted, it would wait, with its notes reserved, and then fail
// with a stale root.
func (a *Admission) checkQueue(ctx context.Context, root [32]byte, w rootWindow) error {
	if !w.known {
		return nil
	}
	if n, ok := a.queue.recent(a.Now()); ok && n <= w.maxAhead() {
		return nil
	}
	if ahead, ok := a.busy.find(w, a.Now()); ok {
		return a.refuseBusy(root, w, ahead)
	}
	// The count of all queued submissions is kept for the next requests. Only if it is too large,
	// the submissions that are really ahead of this one are counted.
	total, w, err := a.countAhead(ctx, root, w, math.MaxInt64)
	if err != nil {
		return err
	}
	if total <= w.maxAhead() {
		a.queue.set(total, a.Now())
		return nil
	}
	ahead, w, err := a.countAhead(ctx, root, w, w.seq)
	if err != nil || ahead <= w.maxAhead() {
		return err
	}
	a.busy.add(w, ahead, a.Now())
	return a.refuseBusy(root, w, ahead)
}

func (a *Admission) refuseBusy(root [32]byte, w rootWindow, ahead int) error {
	pause := a.pause.countRefused(a.Now())
	why := refusal.New(refusal.PoolBusy,
		"the pool is busy: %d submissions or more are ahead, and the proof's root leaves the pool's root history after %d: wait as long as Retry-After says, then prove against the newest root", ahead, w.maxAhead()).
		Retry(pause)
	if pause > momentaryRetryAfter {
		return why // the root of now will be old
	}
	return submission.WithNewestRoot(why, a.Submissions.NewestRoot(root, w.tree))
}

// maxAhead is how many submissions can land while the root history still contains the root.
func (w rootWindow) maxAhead() int { return w.untilEviction / leavesPerSubmission }

// countAhead counts the submissions that Store.CountAhead counts, up to a limit above maxAhead, without
// those whose leaves are in the tree account already: the database may learn later that they landed. It
// also returns the root's position in the tree account after the count. In one of before the count,
// what was recorded in between would be missing too.
func (a *Admission) countAhead(ctx context.Context, root [32]byte, w rootWindow, seq uint64) (int, rootWindow, error) {
	landed := func(slot uint64) int {
		return a.Submissions.Manager.LandedNotRecorded(slot, func(j *txmgr.Job) bool {
			return j.Kind != submission.KindSwapExecution && w.oldest <= submission.FromJob(j).RootSeq
		})
	}
	before := landed(math.MaxUint64)
	n, err := a.Store.CountAhead(ctx, a.Pool.Address, w.oldest, seq, w.maxAhead()+1+before)
	if err != nil {
		return 0, w, err
	}
	after, err := a.findRoot(ctx, root)
	switch {
	case err != nil:
		return 0, w, err
	case after.known:
		w = after
	}
	return n - min(n, before, landed(w.slot)), w, nil
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
