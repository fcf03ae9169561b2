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
	// treeMaxAge is how old the tree may be when its root history knows the proof's
	// root; an unknown root is looked for in a fresh one.
	treeMaxAge = 400 * time.Millisecond
	// leavesEach is how many leaves a submission appends, and so how many roots it
	// drives out of the ring.
	leavesEach = 2
	// queueCountMaxAge is how old the fleet's count may be, with what this process
	// accepted since added to it.
	queueCountMaxAge = 100 * time.Millisecond
	// slotReportDelay is how long it may take until the fleet knows of a slot that one
	// process has seen.
	slotReportDelay = 150 * time.Millisecond
	// busyRetryAfter is what clients are told to wait: a slot or two land some.
	busyRetryAfter = time.Second
)

// rootWindow is where a submission's root stands in the ring.
type rootWindow struct {
	// seq is the number of leaves that the tree had when the root was its newest.
	seq uint64
	// untilEviction is how many more leaves may be appended before the root leaves the
	// ring; known is false when the tree account cannot tell.
	untilEviction int
	// oldest is the seq of the oldest root in the ring.
	oldest uint64
	known  bool
}

// findRoot looks the root up in the ring. Without a self-checked tree nothing is
// known, and the simulation before signing decides.
func (a *Admission) findRoot(ctx context.Context, root [32]byte) (rootWindow, error) {
	snap, err := a.State.TreeWith(ctx, root, treeMaxAge)
	if err != nil || !snap.Checked {
		return rootWindow{}, err
	}
	headroom := snap.Tree.Headroom(root)
	if headroom < 0 {
		return rootWindow{}, a.refuseUnknownRoot(ctx, root, &snap)
	}
	newest, most := snap.Tree.NextIndex, len(snap.Tree.History)-1
	seqAt := func(age int) uint64 { return newest - min(uint64(age), newest) } //nolint:gosec // the headroom is below the ring's length
	return rootWindow{seq: seqAt(most - headroom), untilEviction: headroom, oldest: seqAt(most), known: true}, nil
}

// refuseUnknownRoot tells a root that has left the ring from one that the node has not
// seen yet: another process may have given it to the client just now, and then
// tells the others of the slot within slotReportDelay.
func (a *Admission) refuseUnknownRoot(ctx context.Context, root [32]byte, snap *onchain.Snapshot) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(slotReportDelay):
	}
	seen, err := a.Store.HighestTreeSlot(ctx, a.Pool.Address)
	if err != nil {
		return err
	}
	if snap.Slot < seen {
		return refusal.New(refusal.ChainUnavailable,
			"the node that this relay reads is behind: it stands at slot %d, and %d has been seen, so that it cannot tell whether the proof's root is stale: send the same request again in a moment", snap.Slot, seen).
			Retry(busyRetryAfter)
	}
	if snap.Doubtful || snap.Behind {
		return refusal.New(refusal.ChainUnavailable,
			"the RPC endpoints of this relay do not agree on where the chain is, so that it cannot tell whether the proof's root is stale: send the same request again in a moment").
			Retry(busyRetryAfter)
	}
	return submission.StaleRoot(root, snap.Tree.Root)
}

// checkQueue refuses a submission when those that go before it would drive its
// root out of the ring: taken all the same, it would fail as a stale root after
// a wait, and keep its notes reserved meanwhile.
func (a *Admission) checkQueue(ctx context.Context, p rootWindow) error {
	if !p.known {
		return nil
	}
	most := p.untilEviction / leavesEach
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
		Retry(busyRetryAfter)
}

// queueLength keeps the fleet's count of submissions that have not landed.
type queueLength struct {
	mu sync.Mutex
	n  int
	at time.Time
}

// recent gives the last count and what was accepted here since; false when it is old.
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
