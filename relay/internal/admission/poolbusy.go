package admission

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// leavesPerSubmission is the number of leaves that a submission appends, and so the number of
	// roots that it evicts from the root history.
	leavesPerSubmission = 2
	// queueCountMaxAge is how long a count of the queue is used before it is counted again, however many
	// clients ask. Meanwhile this process adds what enters to the count.
	// maxAgeDuringCount is how long it is used while the next count runs.
	queueCountMaxAge  = 100 * time.Millisecond
	maxAgeDuringCount = 400 * time.Millisecond
	// momentaryRetryAfter is the Retry-After of refusals whose cause passes in a moment: some
	// submissions land within one or two slots.
	momentaryRetryAfter = time.Second
)

// enterQueue refuses a submission if it would wait, with its notes reserved, and then fail with a stale
// root, because the submissions ahead of it evict its root from the root history; or if another would,
// because the new submission has an older root, and goes before it. Otherwise the submission counts from
// now on, although it is not accepted yet; the caller must call queue.leave once it is, or is refused.
func (a *Admission) enterQueue(ctx context.Context, root [32]byte, w rootWindow) error {
	if !w.known {
		return nil
	}
	if err := a.countQueueIfOld(ctx, w); err != nil {
		return err
	}
	ahead, most, ok := a.queue.enter(w.seq)
	if ok {
		return nil
	}
	pause := a.pause.countRefused(a.Now())
	why := refusal.New(refusal.PoolBusy,
		"the pool is busy: %d submissions would go before this one, or before one that this one delays, and at most %d may, or its root would leave the pool's root history: wait as long as Retry-After says, then prove against the newest root", ahead, most).
		Retry(pause)
	if pause > momentaryRetryAfter {
		return why // the root of now will be old
	}
	return submission.WithNewestRoot(why, a.Submissions.NewestRoot(root, w.tree))
}

// countQueueIfOld counts the queue if the last count is old. Only one count runs at a time. Meanwhile the
// last one will do, unless it is too old for that too.
func (a *Admission) countQueueIfOld(ctx context.Context, w rootWindow) error {
	for {
		running, first, age := a.queue.startCount(a.Now())
		switch {
		case first:
			return a.countQueueOnce(ctx, w)
		case running == nil || age < maxAgeDuringCount:
			return nil
		}
		select {
		case <-running:
		case <-ctx.Done():
			return a.countQueue(ctx, w) // which fails, and says why
		}
	}
}

func (a *Admission) countQueueOnce(ctx context.Context, w rootWindow) error {
	defer a.queue.endCount()
	return a.countQueue(ctx, w)
}

// countQueue counts the queue, without those whose leaves are in the tree account already: the database
// may learn later that they landed. The tree account is read after the count. In one of before the
// count, what was recorded in between would be missing too.
func (a *Admission) countQueue(ctx context.Context, w rootWindow) error {
	landed := func(slot uint64) int {
		return a.Submissions.Manager.LandedNotRecorded(slot, func(j *txmgr.Job) bool {
			return j.Kind != submission.KindSwapExecution && w.oldest <= submission.FromJob(j).RootSeq
		})
	}
	before := landed(math.MaxUint64)
	q, err := a.Store.QueueByRoot(ctx, a.Pool.Address, w.oldest)
	if err != nil {
		return err
	}
	snap, err := a.State.Tree(ctx, treeMaxAge)
	if err != nil {
		return err
	}
	if snap.Checked && snap.Slot >= w.slot {
		w.tree, w.slot = snap.Tree, snap.Slot
	}
	q.InFlight -= min(q.InFlight, before, landed(w.slot))
	a.queue.set(q, w.tree, a.Now())
	return nil
}

// queue is what all relays have to do for the pool, as counted a moment ago.
type queue struct {
	mu        sync.Mutex
	byRoot    submission.QueueByRoot
	tree      *shieldpool.TreeAccount
	countedAt time.Time
	counting  chan struct{} // closed at the end of the count that runs; nil if none does
	// waits is true if submissions waited when the queue was counted, for capacity or to be tried again. The
	// next ones may wait too, and a root gets old meanwhile, so the queue must not be filled to its end: an
	// eighth is kept for those that are sent after another one and land before it, and what is about to be
	// accepted counts. Otherwise all are in flight, and land within slots: more are let in, although some
	// proofs may then come too late, because to refuse many would be worse.
	waits bool
	// entered counts, by seq, what this process is about to accept, and accepted what it has accepted since
	// the last count began. The database's count may be without either.
	entered, accepted map[uint64]int
}

// startCount returns the count that runs, nil if none need run, or true if the caller must count and then
// call endCount. age is the age of the last count.
func (q *queue) startCount(now time.Time) (running chan struct{}, first bool, age time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	age = now.Sub(q.countedAt)
	if age < queueCountMaxAge {
		return nil, false, age
	}
	if first = q.counting == nil; first {
		q.counting = make(chan struct{})
		q.accepted = make(map[uint64]int)
		if q.entered == nil {
			q.entered = make(map[uint64]int)
		}
	}
	return q.counting, first, age
}

func (q *queue) endCount() {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.counting)
	q.counting = nil
}

func (q *queue) set(counted submission.QueueByRoot, tree *shieldpool.TreeAccount, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byRoot, q.tree, q.countedAt, q.waits = counted, tree, now, len(counted.Waiting) > 0
	for seq, n := range q.accepted {
		q.add(seq, n)
	}
	if q.waits {
		for seq, n := range q.entered {
			q.add(seq, n)
		}
	}
}

// enter adds a submission unless the queue is too full for it; see full.
func (q *queue) enter(seq uint64) (ahead, most int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ahead, most, full := q.full(seq)
	if !full {
		q.entered[seq]++
		if q.waits {
			q.add(seq, 1)
		}
	}
	return ahead, most, !full
}

// leave is called when a submission that entered is accepted, or refused after all.
func (q *queue) leave(seq uint64, accepted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.entered[seq] == 0 { // the tree was not known
		return
	}
	if q.entered[seq]--; q.entered[seq] == 0 {
		delete(q.entered, seq)
	}
	switch {
	case accepted:
		q.accepted[seq]++
		if !q.waits {
			q.add(seq, 1)
		}
	case q.waits:
		q.add(seq, -1)
	}
}

func (q *queue) add(seq uint64, n int) {
	i, found := slices.BinarySearchFunc(q.byRoot.Waiting, seq, func(r submission.AtRoot, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	if !found {
		q.byRoot.Waiting = slices.Insert(q.byRoot.Waiting, i, submission.AtRoot{Seq: seq})
	}
	q.byRoot.Waiting[i].Submissions += n
}

// full reports whether one more submission, with the root seq, would be too late or make another one too
// late: ahead submissions go before that one, and most can land while the root history still contains
// its root.
func (q *queue) full(seq uint64) (ahead, most int, full bool) {
	ahead = q.byRoot.InFlight
	newer := false // than the new submission's root
	for _, r := range q.byRoot.Waiting {
		if !newer && r.Seq > seq {
			newer = true
			if ahead > q.canLand(seq) {
				return ahead, q.canLand(seq), true
			}
		}
		if q.leavesLeft(r.Seq) >= 0 { // else it fails, and no others wait for it
			ahead += r.Submissions
		}
		if newer && ahead > q.canLand(r.Seq) {
			return ahead, q.canLand(r.Seq), true
		}
	}
	return ahead, q.canLand(seq), !newer && ahead > q.canLand(seq)
}

// leavesLeft is how many leaves can be appended while the root history still contains the root; negative
// if it does not.
func (q *queue) leavesLeft(seq uint64) int {
	return int(seq) + len(q.tree.History) - 1 - int(q.tree.NextIndex) //nolint:gosec // counts of leaves are at most 2^32
}

// canLand is how many submissions may go before another while the root history still contains its root.
func (q *queue) canLand(seq uint64) int {
	n := max(q.leavesLeft(seq), 0) / leavesPerSubmission
	if q.waits {
		n -= n / 8
	}
	return n
}
