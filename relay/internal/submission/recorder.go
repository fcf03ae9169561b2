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
	// outcomePatience is how long landed submissions wait for the index to read
	// their block, so that answers can name the leaves, and for the tree's root.
	outcomePatience = time.Second
	// recordBatch is how many outcomes one statement writes.
	recordBatch = 256
	// recordAgain is the pause after a write that failed.
	recordAgain = 250 * time.Millisecond
)

// recorder writes outcomes, many in one statement: what lands in one slot is
// told in one write. A write that fails is tried again until it succeeds or the
// lease is lost; meanwhile nothing else happens to those submissions.
type recorder struct {
	e    *Engine
	bell chan struct{}

	mu        sync.Mutex
	landed    []*landing
	finalized []*watched

	// failing says that the last write failed: told once, not four times a second.
	failing bool
}

// landing is a submission in flight that has landed.
type landing struct {
	w *entry
	o Outcome
}

func newRecorder(e *Engine) *recorder { return &recorder{e: e, bell: make(chan struct{}, 1)} }

// land queues a landing.
func (r *recorder) land(w *entry, o Outcome) {
	r.mu.Lock()
	r.landed = append(r.landed, &landing{w: w, o: o})
	r.mu.Unlock()
	ring(r.bell)
}

// finalize queues the end of watches.
func (r *recorder) finalize(ws []*watched) {
	if len(ws) == 0 {
		return
	}
	r.mu.Lock()
	r.finalized = append(r.finalized, ws...)
	r.mu.Unlock()
	ring(r.bell)
}

// run writes until ctx ends, and then once more.
func (r *recorder) run(ctx context.Context) {
	again := time.NewTicker(recordAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.e.Timing.Lease)
			r.flush(last)
			cancel()
			return
		case <-r.bell:
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
	leafless := func(l *landing) bool { return l.w.c.Kind == KindSettlement }
	settled := slices.DeleteFunc(slices.Clone(lands), func(l *landing) bool { return !leafless(l) })
	r.write(ctx, settled)
	if lands = slices.DeleteFunc(lands, leafless); len(lands) > 0 {
		r.describe(ctx, lands)
		r.write(ctx, lands)
	}
	for batch := range slices.Chunk(finals, recordBatch) {
		if !r.end(ctx, batch) {
			r.mu.Lock()
			r.finalized = append(r.finalized, batch...)
			r.mu.Unlock()
		}
	}
}

// write writes landings, and queues again what could not be written.
func (r *recorder) write(ctx context.Context, lands []*landing) {
	for batch := range slices.Chunk(lands, recordBatch) {
		if !r.complete(ctx, batch) {
			r.mu.Lock()
			r.landed = append(r.landed, batch...)
			r.mu.Unlock()
		}
	}
}

// patience bounds one write: a database that hangs must not stop the next try.
func (r *recorder) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.e.Timing.Lease)
}

// describe adds, for the clients' convenience, leaves and root: an index or a
// chain that does not answer now must not hold the outcome up.
func (r *recorder) describe(ctx context.Context, lands []*landing) {
	ctx, cancel := context.WithTimeout(ctx, outcomePatience)
	defer cancel()
	var wanted [][32]byte
	for _, l := range lands {
		wanted = append(wanted, commitmentsOf(l.w.c.Submission)...)
	}
	if err := r.e.Leaves.Sync(ctx); err != nil {
		r.e.Log.DebugContext(ctx, "Completed submissions before the index had read their blocks", "error", err)
	}
	found, err := r.e.Leaves.Find(ctx, wanted)
	if err != nil {
		r.e.Log.DebugContext(ctx, "Completed submissions without their leaves", "error", err)
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
	if s.Kind == KindSettlement {
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

// complete writes landings; false when they have to be written again.
func (r *recorder) complete(ctx context.Context, batch []*landing) bool {
	ctx, cancel := r.patience(ctx)
	defer cancel()
	e := r.e
	landings := make([]Landing, len(batch))
	for i, l := range batch {
		landings[i] = Landing{Lease: l.w.c.Lease(), Outcome: l.o}
	}
	lost, err := e.Store.Complete(ctx, landings)
	if err != nil {
		r.failed(ctx, len(batch), err)
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
		r.told(ctx, c, &l.o)
		for _, a := range c.Live {
			if a.Signature == l.o.Signature {
				e.Payers.Worked(a.FeePayer)
			}
		}
		e.tracker.landed(l.w, &l.o)
	}
	return true
}

// told passes on that a landing is written.
func (r *recorder) told(ctx context.Context, c *Claimed, o *Outcome) {
	e := r.e
	if c.Kind == KindSettlement {
		e.Observer.Outcome(c.Kind, string(o.Phase))
		e.Observer.Stage("settle", e.Now().Sub(c.CreatedAt))
		e.Log.InfoContext(ctx, "Settled a swap", "request_id", c.Parent, "phase", o.Phase, "slot", o.Slot)
		return
	}
	e.Observer.Outcome(c.Kind, "completed")
	e.Observer.Stage("confirm", e.Now().Sub(c.CreatedAt))
	e.Log.InfoContext(ctx, "Completed a submission", "request_id", c.ID, "slot", o.Slot)
	if c.Kind == shieldpool.KindSwap {
		ring(e.settling) // its second leg is due
	}
}

// end writes the ends of watches; false when they have to be written again.
func (r *recorder) end(ctx context.Context, batch []*watched) bool {
	ctx, cancel := r.patience(ctx)
	defer cancel()
	e := r.e
	r.leaves(ctx, batch)
	landings := make([]Landing, len(batch))
	var pins []SignPin // in the order of the batch: the first to be final pins
	taught := map[string]bool{}
	for i, w := range batch {
		landings[i] = Landing{Lease: w.lease, Outcome: Outcome{
			Signature: w.signature, Slot: w.slot, LeafIndices: w.leaves, Phase: w.phase, Returned: w.returned,
		}}
		if w.sign != "" && !taught[w.sign] {
			taught[w.sign] = true
			pins = append(pins, SignPin{KeyHash: e.Signs.KeyHash(), Sign: w.sign, Signature: w.signature})
		}
	}
	lost, err := e.Store.Finalize(ctx, landings, pins)
	if err != nil {
		r.failed(ctx, len(batch), err)
		return false
	}
	r.failing = false
	gone := leaseSet(lost)
	for _, w := range batch {
		e.tracker.forget(w)
		if gone[w.lease] {
			e.Observer.Lease("lost", 1)
			continue
		}
		e.Observer.Outcome(w.kind, "finalized")
		e.Observer.Stage("finalize", e.Now().Sub(w.created))
		e.Log.DebugContext(ctx, "Finalized a submission", "request_id", w.lease.ID, "slot", w.slot)
	}
	return true
}

// failed tells of the first of a row of failed writes.
func (r *recorder) failed(ctx context.Context, submissions int, err error) {
	level := slog.LevelWarn
	if r.failing {
		level = slog.LevelDebug
	}
	r.failing = true
	r.e.Log.Log(ctx, level, "Could not write outcomes, trying again", "submissions", submissions, "error", err)
}

// leaves are told with finality where the index came later than the landing.
func (r *recorder) leaves(ctx context.Context, batch []*watched) {
	var wanted [][32]byte
	for _, w := range batch {
		wanted = append(wanted, w.commitments...)
	}
	if len(wanted) == 0 {
		return
	}
	found, err := r.e.Leaves.Find(ctx, wanted)
	if err != nil {
		r.e.Log.DebugContext(ctx, "Finalized submissions without their leaves", "error", err)
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
