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
	landed    []*queuedLanding
	finalized []*landedEntry
	// unrecorded has the landings that are not in the database yet, also while they are written.
	unrecorded map[*queuedLanding]struct{}

	// failing is true if the last write failed. Writes are repeated four times a second, so only
	// the first of several failures in a row is logged as a warning.
	failing bool
}

// queuedLanding is the landing of a job in flight. It is not in the database yet.
type queuedLanding struct {
	entry   *entry
	landing Landing
}

func newRecorder(m *Manager) *recorder {
	return &recorder{m: m, wake: make(chan struct{}, 1), unrecorded: make(map[*queuedLanding]struct{})}
}

// queueLanding queues a landing.
func (r *recorder) queueLanding(w *entry, l Landing) {
	q := &queuedLanding{entry: w, landing: l}
	r.mu.Lock()
	r.landed = append(r.landed, q)
	r.unrecorded[q] = struct{}{}
	r.mu.Unlock()
	signal(r.wake)
}

func (r *recorder) countUnrecorded() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.unrecorded)
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

// run writes the queued outcomes until ctx ends. It then tries once to write what is still queued.
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
	landed, finalized := r.landed, r.finalized
	r.landed, r.finalized = nil, nil
	r.mu.Unlock()
	// The main queue's landings are written last, because Complete may wait for more details of
	// them. The landings of the other queues must not wait for that.
	for _, l := range slices.Backward(r.m.queues) {
		ofQueue := slices.DeleteFunc(slices.Clone(landed), func(q *queuedLanding) bool { return q.entry.j.queue != l })
		r.writeLandings(ctx, ofQueue)
	}
	for batch := range slices.Chunk(finalized, recordBatch) {
		if !r.writeFinalized(ctx, batch) {
			r.mu.Lock()
			r.finalized = append(r.finalized, batch...)
			r.mu.Unlock()
		}
	}
}

// writeLandings writes landings, and queues again those that could not be written.
func (r *recorder) writeLandings(ctx context.Context, landings []*queuedLanding) {
	for batch := range slices.Chunk(landings, recordBatch) {
		if !r.writeLandingBatch(ctx, batch) {
			r.mu.Lock()
			r.landed = append(r.landed, batch...)
			r.mu.Unlock()
		}
	}
}

// writeLandingBatch writes landings in one statement. It returns false when they have to be written
// again.
func (r *recorder) writeLandingBatch(ctx context.Context, batch []*queuedLanding) bool {
	m := r.m
	landed := make([]Landed, len(batch))
	for i, q := range batch {
		landed[i] = Landed{Job: q.entry.j, Landing: q.landing}
	}
	lost, err := m.Outcomes.Complete(ctx, landed)
	if err != nil {
		r.logFailure(ctx, len(batch), err)
		return false
	}
	r.failing = false
	r.forget(batch)
	isLost := leaseSet(lost)
	for _, q := range batch {
		j, l := q.entry.j, q.landing
		if isLost[j.Lease] {
			m.Observer.Lease("lost", 1)
			m.tracker.drop(q.entry)
			continue
		}
		r.observeOvertaken(j, l)
		for _, a := range j.Live {
			if a.Signature == l.Signature {
				m.Payers.MarkWorking(a.FeePayer)
				m.results.observe(a.Lane, true)
				m.Observer.LandedAfter(a.Lane, l.Slot-min(l.Slot, a.BlockhashSlot), a.Fee+a.Tip)
			}
		}
		m.tracker.addLanded(q.entry, l)
	}
	return true
}

// forget removes landings that are in the database from those that are not.
func (r *recorder) forget(batch []*queuedLanding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range batch {
		delete(r.unrecorded, q)
	}
}

// observeOvertaken counts the attempts that a later one overtook: they were sent by too few ways, or
// paid too little.
func (r *recorder) observeOvertaken(j *Job, l Landing) {
	landed := slices.IndexFunc(j.Live, func(a Attempt) bool { return a.Signature == l.Signature })
	for _, a := range j.Live[:max(landed, 0)] {
		if !a.Rejected {
			r.m.results.observe(a.Lane, false)
		}
	}
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
