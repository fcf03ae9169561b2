package admission

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// treeMaxAge is the greatest age of a tree whose root history contains the proof's
	// root. An unknown root is searched in a tree that is read anew.
	treeMaxAge = 400 * time.Millisecond
	// leavesPerSubmission is the number of leaves that a submission appends, and so the number of
	// roots that it evicts from the root history.
	leavesPerSubmission = 2
	// queueCountMaxAge is the greatest age of the count of queued submissions of all relays.
	// Submissions that this process has accepted since then are added to the count.
	queueCountMaxAge = 100 * time.Millisecond
	// treeSlotReportDelay is the longest time until all relays know a slot that one process has
	// observed.
	treeSlotReportDelay = 150 * time.Millisecond
	// poolBusyRetryAfter is the Retry-After of a busy pool: within one or two slots some
	// submissions land.
	poolBusyRetryAfter = time.Second
)

// rootWindow is the position of a submission's root in the root history.
type rootWindow struct {
	// seq is the number of leaves that the tree had when the root was its newest.
	seq uint64
	// untilEviction is the number of leaves that can follow before the root leaves the root
	// history.
	untilEviction int
	// oldest is the seq of the oldest root in the root history.
	oldest uint64
	// known is false when the tree account is not consistent; the other fields are then zero.
	known bool
}

// findRoot finds the root's position in the root history. If the tree account is not
// consistent, nothing is known, and the simulation before signing decides.
func (a *Admission) findRoot(ctx context.Context, root [32]byte) (rootWindow, error) {
	snap, err := a.State.TreeWith(ctx, root, treeMaxAge)
	if err != nil || !snap.Checked {
		return rootWindow{}, err
	}
	untilEviction := snap.Tree.LeavesUntilEviction(root)
	if untilEviction < 0 {
		return rootWindow{}, a.refuseUnknownRoot(ctx, root, &snap)
	}
	newest, oldestAge := snap.Tree.NextIndex, len(snap.Tree.History)-1
	seqAt := func(age int) uint64 { return newest - min(uint64(age), newest) } //nolint:gosec // untilEviction is at most oldestAge
	return rootWindow{seq: seqAt(oldestAge - untilEviction), untilEviction: untilEviction, oldest: seqAt(oldestAge), known: true}, nil
}

// refuseUnknownRoot distinguishes a root that has left the root history from a root that the
// node has not reached yet. Another process may just have given the root to the client. That
// process reports its slot to the others within treeSlotReportDelay, so wait for the report.
func (a *Admission) refuseUnknownRoot(ctx context.Context, root [32]byte, snap *onchain.Snapshot) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(treeSlotReportDelay):
	}
	seen, err := a.Store.HighestTreeSlot(ctx, a.Pool.Address)
	if err != nil {
		return err
	}
	if snap.Slot < seen {
		return refusal.New(refusal.ChainUnavailable,
			"the node that this relay reads is behind, at slot %d of %d, so the relay cannot decide whether the proof's root is stale: send the same request again in a moment", snap.Slot, seen).
			Retry(poolBusyRetryAfter)
	}
	if snap.Doubtful || snap.Behind {
		return refusal.New(refusal.ChainUnavailable,
			"the RPC endpoints of this relay do not agree on the chain's slot, so the relay cannot decide whether the proof's root is stale: send the same request again in a moment").
			Retry(poolBusyRetryAfter)
	}
	return submission.StaleRoot(root, snap.Tree.Root)
}

// checkQueue refuses a submission when the submissions ahead of it would evict its root from
// the root history. Otherwise it would fail with a stale root after a wait, and keep its notes
// reserved meanwhile.
func (a *Admission) checkQueue(ctx context.Context, w rootWindow) error {
	if !w.known {
		return nil
	}
	most := w.untilEviction / leavesPerSubmission
	if n, ok := a.queue.recent(a.Now()); ok && n <= most {
		return nil
	}
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
