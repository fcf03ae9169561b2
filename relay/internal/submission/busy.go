package submission

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// leavesEach is how many leaves a submission appends, and so how many roots it
	// drives out of the ring.
	leavesEach = 2
	// queueAge is how old the fleet's count may be, with what this process
	// accepted since added to it.
	queueAge = 100 * time.Millisecond
	// spread is how long it may take until the fleet knows of a slot that one
	// process has seen.
	spread = 150 * time.Millisecond
	// retryBusy is what clients are told to wait: a slot or two land some.
	retryBusy = time.Second
)

// place is where a submission's root stands in the ring.
type place struct {
	// seq is the number of leaves that the tree had when the root was its newest.
	seq uint64
	// headroom is how many more leaves may be appended before the root leaves the
	// ring; known is false when the tree account cannot tell.
	headroom int
	// oldest is the seq of the oldest root in the ring.
	oldest uint64
	known  bool
}

// placeOf looks the root up in the ring. Without a self-checked tree nothing is
// known, and the simulation before signing decides.
func (a *Admission) placeOf(ctx context.Context, root [32]byte) (place, error) {
	snap, err := a.State.TreeWith(ctx, root, treeAge)
	if err != nil || !snap.Checked {
		return place{}, err
	}
	headroom := snap.Tree.Headroom(root)
	if headroom < 0 {
		return place{}, a.notInRing(ctx, root, &snap)
	}
	newest, most := snap.Tree.NextIndex, len(snap.Tree.History)-1
	seqAt := func(age int) uint64 { return newest - min(uint64(age), newest) } //nolint:gosec // the headroom is below the ring's length
	return place{seq: seqAt(most - headroom), headroom: headroom, oldest: seqAt(most), known: true}, nil
}

// notInRing tells a root that has left the ring from one that the node has not
// seen yet: another process may have given it to the client just now, and then
// tells the others of the slot within spread.
func (a *Admission) notInRing(ctx context.Context, root [32]byte, snap *ledger.Snapshot) error {
	if !pause(ctx, spread) {
		return ctx.Err()
	}
	seen, err := a.Store.Seen(ctx, a.Pool.Address)
	if err != nil {
		return err
	}
	if snap.Slot < seen {
		return refusal.New(refusal.ChainUnavailable,
			"the node that this relay reads is behind: it stands at slot %d, and %d has been seen, so that it cannot tell whether the proof's root is stale: send the same request again in a moment", snap.Slot, seen).
			Retry(retryBusy)
	}
	if snap.Doubtful {
		return refusal.New(refusal.ChainUnavailable,
			"the RPC endpoints of this relay do not agree on where the chain is, so that it cannot tell whether the proof's root is stale: send the same request again in a moment").
			Retry(retryBusy)
	}
	return staleRoot(root, snap.Tree.Root)
}

// notTooLate refuses a submission when those that go before it would drive its
// root out of the ring: taken all the same, it would fail as a stale root after
// a wait, and keep its notes reserved meanwhile.
func (a *Admission) notTooLate(ctx context.Context, p place) error {
	if !p.known {
		return nil
	}
	most := p.headroom / leavesEach
	if n, ok := a.queue.recent(a.Now()); ok && n <= most {
		return nil
	}
	total, err := a.Store.Ahead(ctx, a.Pool.Address, p.oldest, math.MaxInt64, most+1)
	if err != nil {
		return err
	}
	if total <= most {
		a.queue.counted(total, a.Now())
		return nil
	}
	ahead, err := a.Store.Ahead(ctx, a.Pool.Address, p.oldest, p.seq, most+1)
	if err != nil || ahead <= most {
		return err
	}
	return refusal.New(refusal.PoolBusy,
		"the pool is busy: %d submissions or more are ahead, and the proof's root leaves the pool's root history after %d: send the request again in a moment, proven against the newest root", ahead, most).
		Retry(retryBusy)
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
	return q.n, !q.at.IsZero() && now.Sub(q.at) < queueAge
}

func (q *queueLength) counted(n int, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n, q.at = n, now
}

func (q *queueLength) grew() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n++
}
