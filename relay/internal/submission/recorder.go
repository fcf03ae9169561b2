package submission

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// leavesTimeout is how long landed submissions wait for the index to read
	// their block, so that answers can name the leaves, and for the tree's root.
	leavesTimeout = time.Second
	// recordBatch is how many outcomes one statement writes.
	recordBatch = 256
	// recordRetry is the pause after a write that failed.
	recordRetry = 250 * time.Millisecond
)

// recorder writes outcomes, many in one statement: what lands in one slot is
// told in one write. A write that fails is tried again until it succeeds or the
// lease is lost; meanwhile nothing else happens to those submissions.
type recorder struct {
	e    *Engine
	wake chan struct{}

	mu        sync.Mutex
	landed    []*landing
	finalized []*landedEntry

	// failing says that the last write failed: told once, not four times a second.
	failing bool
}

// landing is a submission in flight that has landed.
type landing struct {
	w *entry
	o Outcome
}

func newRecorder(e *Engine) *recorder { return &recorder{e: e, wake: make(chan struct{}, 1)} }

// queueLanding queues a landing.
func (r *recorder) queueLanding(w *entry, o Outcome) {
	r.mu.Lock()
	r.landed = append(r.landed, &landing{w: w, o: o})
	r.mu.Unlock()
	signal(r.wake)
}

// queueFinalized queues the end of watches.
func (r *recorder) queueFinalized(ws []*landedEntry) {
	if len(ws) == 0 {
		return
	}
	r.mu.Lock()
	r.finalized = append(r.finalized, ws...)
	r.mu.Unlock()
	signal(r.wake)
}

// run writes until ctx ends, and then once more.
func (r *recorder) run(ctx context.Context) {
	again := time.NewTicker(recordRetry)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.e.Timing.Lease)
			r.flush(last)
			cancel()
			return
		case <-r.wake:
		case <-again.C:
		}
		r.flush(ctx)
	}
}

// flush writes what is queued, and queues again what could not be written.
func (r *recorder) flush(ctx context.Context) {
	r.mu.Lock()
	lands, finals := r.landed, r.finalized
	r.landed, r.finalized = nil, nil
	r.mu.Unlock()
	// Settlements add no leaves, and do not wait for the index.
	leafless := func(l *landing) bool { return l.w.c.Kind == KindSwapExecution }
	settled := slices.DeleteFunc(slices.Clone(lands), func(l *landing) bool { return !leafless(l) })
	r.writeLandings(ctx, settled)
	if lands = slices.DeleteFunc(lands, leafless); len(lands) > 0 {
		r.addLeavesAndRoot(ctx, lands)
		r.writeLandings(ctx, lands)
	}
	for batch := range slices.Chunk(finals, recordBatch) {
		if !r.writeFinalized(ctx, batch) {
			r.mu.Lock()
			r.finalized = append(r.finalized, batch...)
			r.mu.Unlock()
		}
	}
}

// writeLandings writes landings, and queues again what could not be written.
func (r *recorder) writeLandings(ctx context.Context, lands []*landing) {
	for batch := range slices.Chunk(lands, recordBatch) {
		if !r.writeCompleted(ctx, batch) {
			r.mu.Lock()
			r.landed = append(r.landed, batch...)
			r.mu.Unlock()
		}
	}
}

// writeContext bounds one write: a database that hangs must not stop the next try.
func (r *recorder) writeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.e.Timing.Lease)
}

// addLeavesAndRoot adds, for the clients' convenience, leaves and root: an index or a
// chain that does not answer now must not hold the outcome up.
func (r *recorder) addLeavesAndRoot(ctx context.Context, lands []*landing) {
	ctx, cancel := context.WithTimeout(ctx, leavesTimeout)
	defer cancel()
	var wanted [][32]byte
	for _, l := range lands {
		wanted = append(wanted, commitmentsOf(l.w.c.Submission)...)
	}
	if err := r.e.Leaves.Sync(ctx); err != nil {
		r.e.Log.DebugContext(ctx, "submissions completed before the index had read their blocks", "error", err)
	}
	found, err := r.e.Leaves.Find(ctx, wanted)
	if err != nil {
		r.e.Log.DebugContext(ctx, "submissions completed without leaf indices", "error", err)
	}
	snap, err := r.e.State.Tree(ctx, r.e.Timing.Poll)
	for _, l := range lands {
		l.o.LeafIndices = indicesOf(commitmentsOf(l.w.c.Submission), found)
		if err == nil {
			l.o.Root = &snap.Tree.Root
		}
		if l.w.c.Kind == shieldpool.KindSwap {
			l.o.Timeout = l.o.Slot + r.e.Pool.Profile.SwapTimeout
		}
	}
}

// commitmentsOf are the leaves that a submission adds.
func commitmentsOf(s *Submission) [][32]byte {
	if s.Kind == KindSwapExecution {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Call.Inputs.Commitments[:]), func(c [32]byte) bool { return c == [32]byte{} })
}

// indicesOf are where the commitments are; nil while not all are found.
func indicesOf(commitments [][32]byte, found map[[32]byte]uint64) []uint64 {
	var out []uint64
	for _, c := range commitments {
		i, ok := found[c]
		if !ok {
			return nil
		}
		out = append(out, i)
	}
	return out
}

// writeCompleted writes landings; false when they have to be written again.
func (r *recorder) writeCompleted(ctx context.Context, batch []*landing) bool {
	ctx, cancel := r.writeContext(ctx)
	defer cancel()
	e := r.e
	landings := make([]Landing, len(batch))
	for i, l := range batch {
		landings[i] = Landing{Lease: l.w.c.Lease(), Outcome: l.o}
	}
	lost, err := e.Store.Complete(ctx, landings)
	if err != nil {
		r.logFailure(ctx, len(batch), err)
		return false
	}
	r.failing = false
	gone := leaseSet(lost)
	for _, l := range batch {
		c := l.w.c
		if gone[c.Lease()] {
			e.Observer.Lease("lost", 1)
			e.tracker.drop(l.w)
			continue
		}
		r.reportCompleted(ctx, c, &l.o)
		for _, a := range c.Live {
			if a.Signature == l.o.Signature {
				e.Payers.MarkWorking(a.FeePayer)
			}
		}
		e.tracker.addLanded(l.w, &l.o)
	}
	return true
}

// reportCompleted passes on that a landing is written.
func (r *recorder) reportCompleted(ctx context.Context, c *Claimed, o *Outcome) {
	e := r.e
	if c.Kind == KindSwapExecution {
		e.Observer.Outcome(c.Kind, string(o.Phase))
		e.Observer.Stage("settle", e.Now().Sub(c.CreatedAt))
		e.Log.InfoContext(ctx, "swap ended", "request_id", c.Parent, "phase", o.Phase, "slot", o.Slot)
		return
	}
	e.Observer.Outcome(c.Kind, "completed")
	e.Observer.Stage("confirm", e.Now().Sub(c.CreatedAt))
	e.Log.InfoContext(ctx, "submission completed", "request_id", c.ID, "slot", o.Slot)
	if c.Kind == shieldpool.KindSwap {
		signal(e.executionsDue) // its second leg is due
	}
}

// writeFinalized writes the ends of watches; false when they have to be written again.
func (r *recorder) writeFinalized(ctx context.Context, batch []*landedEntry) bool {
	ctx, cancel := r.writeContext(ctx)
	defer cancel()
	e := r.e
	r.addLeaves(ctx, batch)
	landings := make([]Landing, len(batch))
	var pins []ProofAPin // in the order of the batch: the first to be final pins
	taught := map[string]bool{}
	for i, w := range batch {
		landings[i] = Landing{Lease: w.lease, Outcome: Outcome{
			Signature: w.signature, Slot: w.slot, LeafIndices: w.leaves, Phase: w.phase, Returned: w.returned,
		}}
		if w.sign != "" && !taught[w.sign] {
			taught[w.sign] = true
			pins = append(pins, ProofAPin{KeyHash: e.ProofA.KeyHash(), Encoding: w.sign, Signature: w.signature})
		}
	}
	lost, err := e.Store.Finalize(ctx, landings, pins)
	if err != nil {
		r.logFailure(ctx, len(batch), err)
		return false
	}
	r.failing = false
	gone := leaseSet(lost)
	for _, w := range batch {
		e.tracker.removeLanded(w)
		if gone[w.lease] {
			e.Observer.Lease("lost", 1)
			continue
		}
		e.Observer.Outcome(w.kind, "finalized")
		e.Observer.Stage("finalize", e.Now().Sub(w.created))
		e.Log.DebugContext(ctx, "submission finalized", "request_id", w.lease.ID, "slot", w.slot)
	}
	return true
}

// logFailure tells of the first of a row of failed writes.
func (r *recorder) logFailure(ctx context.Context, submissions int, err error) {
	level := slog.LevelWarn
	if r.failing {
		level = slog.LevelDebug
	}
	r.failing = true
	r.e.Log.Log(ctx, level, "recording outcomes failed; retrying", "submissions", submissions, "error", err)
}

// addLeaves are told with finality where the index came later than the landing.
func (r *recorder) addLeaves(ctx context.Context, batch []*landedEntry) {
	var wanted [][32]byte
	for _, w := range batch {
		wanted = append(wanted, w.commitments...)
	}
	if len(wanted) == 0 {
		return
	}
	found, err := r.e.Leaves.Find(ctx, wanted)
	if err != nil {
		r.e.Log.DebugContext(ctx, "submissions finalized without leaf indices", "error", err)
		return
	}
	for _, w := range batch {
		w.leaves = indicesOf(w.commitments, found)
	}
}

func leaseSet(leases []Lease) map[Lease]bool {
	out := make(map[Lease]bool, len(leases))
	for _, l := range leases {
		out[l] = true
	}
	return out
}
