package txmgr

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// recordBatch is the largest number of outcomes that one statement writes.
	recordBatch = 256
	// recordRetry is the pause after a write that failed.
	recordRetry = 250 * time.Millisecond
)

// recorder writes outcomes. It writes many in one statement, because all landings of a slot are
// observed together. A failed write is repeated until it succeeds or the lease is lost. Until
// then nothing else happens to those jobs.
type recorder struct {
	m    *Manager
	wake chan struct{}

	mu        sync.Mutex
	landed    []*landing
	finalized []*landedEntry

	// failing reports that the last write failed. Writes are repeated four times a second, so
	// only the first of several failures in a row is logged as a warning.
	failing bool
}

// landing is a job in flight that has landed.
type landing struct {
	w *entry
	l Landing
}

func newRecorder(m *Manager) *recorder { return &recorder{m: m, wake: make(chan struct{}, 1)} }

// queueLanding queues a landing.
func (r *recorder) queueLanding(w *entry, l Landing) {
	r.mu.Lock()
	r.landed = append(r.landed, &landing{w: w, l: l})
	r.mu.Unlock()
	signal(r.wake)
}

// queueFinalized queues landings that are final.
func (r *recorder) queueFinalized(ws []*landedEntry) {
	if len(ws) == 0 {
		return
	}
	r.mu.Lock()
	r.finalized = append(r.finalized, ws...)
	r.mu.Unlock()
	signal(r.wake)
}

// run writes the queued outcomes until ctx ends. Then it writes once more what is still queued.
func (r *recorder) run(ctx context.Context) {
	retry := time.NewTicker(recordRetry)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.m.Timing.Lease)
			r.flush(last)
			cancel()
			return
		case <-r.wake:
		case <-retry.C:
		}
		r.flush(ctx)
	}
}

// flush writes the queued outcomes, and queues again those that could not be written.
func (r *recorder) flush(ctx context.Context) {
	r.mu.Lock()
	lands, finals := r.landed, r.finalized
	r.landed, r.finalized = nil, nil
	r.mu.Unlock()
	// The main lane's landings are written last: its handler may wait for more details of them,
	// and the landings of the other lanes must not wait too.
	for _, l := range slices.Backward(r.m.lanes) {
		ofLane := slices.DeleteFunc(slices.Clone(lands), func(x *landing) bool { return x.w.j.lane != l })
		r.writeLandings(ctx, ofLane)
	}
	for batch := range slices.Chunk(finals, recordBatch) {
		if !r.writeFinalized(ctx, batch) {
			r.mu.Lock()
			r.finalized = append(r.finalized, batch...)
			r.mu.Unlock()
		}
	}
}

// writeLandings writes landings, and queues again those that could not be written.
func (r *recorder) writeLandings(ctx context.Context, lands []*landing) {
	for batch := range slices.Chunk(lands, recordBatch) {
		if !r.writeCompleted(ctx, batch) {
			r.mu.Lock()
			r.landed = append(r.landed, batch...)
			r.mu.Unlock()
		}
	}
}

// writeCompleted writes landings. It returns false when they have to be written again.
func (r *recorder) writeCompleted(ctx context.Context, batch []*landing) bool {
	m := r.m
	landed := make([]Landed, len(batch))
	for i, l := range batch {
		landed[i] = Landed{Job: l.w.j, Landing: l.l}
	}
	lost, err := m.Outcomes.Complete(ctx, landed)
	if err != nil {
		r.logFailure(ctx, len(batch), err)
		return false
	}
	r.failing = false
	isLost := leaseSet(lost)
	for _, l := range batch {
		j := l.w.j
		if isLost[j.Lease] {
			m.Observer.Lease("lost", 1)
			m.tracker.drop(l.w)
			continue
		}
		for _, a := range j.Live {
			if a.Signature == l.l.Signature {
				m.Payers.MarkWorking(a.FeePayer)
				m.Observer.LandedAfter(l.l.Slot - min(l.l.Slot, a.BlockhashSlot))
			}
		}
		m.tracker.addLanded(l.w, l.l)
	}
	return true
}

// writeFinalized writes that landings are final. It returns false when the write has to be
// repeated.
func (r *recorder) writeFinalized(ctx context.Context, batch []*landedEntry) bool {
	m := r.m
	landed := make([]Landed, len(batch))
	for i, w := range batch {
		landed[i] = w.Landed
	}
	lost, err := m.Outcomes.Finalize(ctx, landed)
	if err != nil {
		r.logFailure(ctx, len(batch), err)
		return false
	}
	r.failing = false
	for _, w := range batch {
		m.tracker.removeLanded(w)
	}
	if len(lost) > 0 {
		m.Observer.Lease("lost", len(lost))
	}
	return true
}

// logFailure logs the first of a series of failed writes.
func (r *recorder) logFailure(ctx context.Context, submissions int, err error) {
	level := slog.LevelWarn
	if r.failing {
		level = slog.LevelDebug
	}
	r.failing = true
	r.m.Log.Log(ctx, level, "recording outcomes failed; retrying", "submissions", submissions, "error", err)
}

func leaseSet(leases []Lease) map[Lease]bool {
	out := make(map[Lease]bool, len(leases))
	for _, l := range leases {
		out[l] = true
	}
	return out
}
