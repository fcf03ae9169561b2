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
	// queueCountMaxAge is the greatest age of the fleet's count. The submissions that this
	// process accepted since are added to it.
	queueCountMaxAge = 100 * time.Millisecond
	// treeSlotReportDelay is how long it takes at most until the fleet knows a slot that one
	// process has observed.
	treeSlotReportDelay = 150 * time.Millisecond
	// poolBusyRetryAfter is the delay that clients are given: one or two slots land some
	// submissions.
	poolBusyRetryAfter = time.Second
)

// rootWindow is the position of a submission's root in the root history.
type rootWindow struct {
	// seq is the number of leaves that the tree had when the root was its newest.
	seq uint64
	// untilEviction is the number of leaves after which the root leaves the root history.
	// known is false when the tree account cannot tell.
	untilEviction int
	// oldest is the seq of the oldest root in the root history.
	oldest uint64
	known  bool
}

// findRoot looks the root up in the root history. Without a self-checked tree nothing is
// known, and the simulation before signing decides.
func (a *Admission) findRoot(ctx context.Context, root [32]byte) (rootWindow, error) {
	snap, err := a.State.TreeWith(ctx, root, treeMaxAge)
	if err != nil || !snap.Checked {
		return rootWindow{}, err
	}
	headroom := snap.Tree.LeavesUntilEviction(root)
	if headroom < 0 {
		return rootWindow{}, a.refuseUnknownRoot(ctx, root, &snap)
	}
	newest, untilEviction := snap.Tree.NextIndex, len(snap.Tree.History)-1
	seqAt := func(age int) uint64 { return newest - min(uint64(age), newest) } //nolint:gosec // the headroom is below the root history's length
	return rootWindow{seq: seqAt(untilEviction - headroom), untilEviction: headroom, oldest: seqAt(untilEviction), known: true}, nil
}

// refuseUnknownRoot distinguishes a root that has left the root history from one that the
// node has not reached yet. Another process may just have given that root to the client; it
// reports the slot to the others within treeSlotReportDelay.
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

// checkQueue refuses a submission when those before it would evict its root from the root
// history. Otherwise it would fail as a stale root after a wait, and keep its notes
// reserved meanwhile.
func (a *Admission) checkQueue(ctx context.Context, p rootWindow) error {
	if !p.known {
		return nil
	}
	most := p.untilEviction / leavesPerSubmission
	if n, ok := a.queue.recent(a.Now()); ok && n <= most {
		return nil
	}
	total, err := a.Store.CountAhead(ctx, a.Pool.Address, p.oldest, math.MaxInt64, most+1)
	if err != nil {
		return err
	}
	if total <= most {
		a.queue.set(total, a.Now())
		return nil
	}
	ahead, err := a.Store.CountAhead(ctx, a.Pool.Address, p.oldest, p.seq, most+1)
	if err != nil || ahead <= most {
		return err
	}
	return refusal.New(refusal.PoolBusy,
		"the pool is busy: %d submissions or more are ahead, and the proof's root leaves the pool's root history after %d: send the request again in a moment, proven against the newest root", ahead, most).
		Retry(poolBusyRetryAfter)
}

// queueLength keeps the fleet's count of submissions that have not landed.
type queueLength struct {
	mu sync.Mutex
	n  int
	at time.Time
}

// recent returns the last count plus the submissions accepted here since; false when the
// count is old.
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
