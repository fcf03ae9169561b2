package txmgr

import (
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// tracker tracks the jobs that this process has leased and that may be on the chain. One loop
// polls the statuses of all their signatures together, and rebroadcasts attempts that are not
// on the chain.
type tracker struct {
	m *Manager
	// pollSoon brings the next poll forward.
	pollSoon chan struct{}

	mu      sync.Mutex
	entries map[uuid.UUID]*entry
	landed  map[uuid.UUID]*landedEntry

	// sends runs rebroadcasts. resolving is locked while a search for old attempts runs. Both run
	// concurrently with the polling.
	sends     errgroup.Group
	resolving sync.Mutex
	// recordingUnverified is locked while it is written to the database that jobs are held for a
	// second endpoint. withoutCapacity counts the entries that released their capacity because
	// their outcome is unverified.
	recordingUnverified sync.Mutex
	withoutCapacity     int
}

// entry is one job in flight, under one lease. Its phase says which goroutine owns its fields.
// The tracker's mu guards the phase.
type entry struct {
	j     *Job
	phase phase
	// rebroadcasts counts the rebroadcasts since the last signature, which was at signedAt;
	// rebroadcastAt is when the next one is due.
	rebroadcasts            int
	signedAt, rebroadcastAt time.Time
	// resolveAt is the earliest time at which the attempts are searched again.
	resolveAt time.Time
	// capacityReleased is true once the entry has released its capacity.
	capacityReleased bool
	// unverifiedSince is when an outcome was first reported by only one endpoint; zero while
	// there is no such outcome. unverifiedRecorded is true if the database records the job as
	// held for this reason. withoutCapacity is true if the entry released its capacity for this
	// reason.
	unverifiedSince                     time.Time
	unverifiedRecorded, withoutCapacity bool
}

// phase says which goroutine owns an entry.
type phase int

const (
	// working: a step of the job runs, or is about to run.
	working phase = iota
	// tracking: the tracker polls the job's signatures.
	tracking
	// recording: the job landed, and the recorder writes the landing.
	recording
)

// landedEntry is the part of a landed job that is kept until the landing is final. It is small,
// because there may be thousands of landed jobs.
type landedEntry struct {
	Landed
	// missed counts the polls in a row that did not find the signature. busy is set while all
	// history is searched for the signature, and while a write finalizes or reopens the job; then
	// only the search or the write uses Slot. The tracker's mu guards missed and busy.
	missed int
	busy   bool
}

func newTracker(m *Manager) *tracker {
	t := &tracker{m: m, pollSoon: make(chan struct{}, 1), entries: map[uuid.UUID]*entry{}, landed: map[uuid.UUID]*landedEntry{}}
	t.sends.SetLimit(sendWorkers)
	return t
}

// add adds a job with its lease and capacity, for its first step. If duplicate is true, a step
// already runs under the same lease, because the database lost the lease in a failover and assigned
// it again.
func (t *tracker) add(j *Job) (w *entry, duplicate bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.since = t.m.Now()
	w = &entry{j: j, phase: working}
	if old := t.entries[j.ID]; old != nil { // an earlier lease of the same row, lost unnoticed
		duplicate = old.phase == working && old.j.Lease == j.Lease
		t.replace(old)
	}
	t.entries[j.ID] = w
	return w, duplicate
}

// track moves an entry to the phase tracking, after a step. The schedule of its rebroadcasts begins
// again if the step signed an attempt.
func (t *tracker) track(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.phase != working {
		return
	}
	w.phase = tracking
	if w.j.since.After(w.unverifiedSince) { // signed again: only an earlier attempt was unverified
		w.unverifiedSince, w.unverifiedRecorded = time.Time{}, false
	}
	if l := w.j.queue; l != nil && l.ReleaseWhenSent && !w.capacityReleased {
		t.releaseCapacity(w)
		l.ClaimSoon()
	}
	if w.rebroadcastAt.IsZero() || w.j.since.After(w.signedAt) {
		w.rebroadcasts, w.signedAt = 0, w.j.since
		w.rebroadcastAt = t.m.Now().Add(rebroadcastAfter(0, t.m.SlotDuration()))
	}
}

// recordLanding passes an entry and its landing to the recorder. The entry releases its capacity:
// Complete may wait for the leaves of the landing, and the next job need not. If as many landings as
// the queue has capacity for are not recorded, the database lags, and the entry keeps its capacity
// until its landing is recorded.
func (t *tracker) recordLanding(w *entry, l Landing) {
	lags := t.m.recorder.countUnrecorded() >= w.j.queue.Capacity
	t.mu.Lock()
	w.phase = recording
	if !lags {
		t.releaseCapacity(w)
		t.claimRemaining()
	}
	t.mu.Unlock()
	t.m.outage.reset()
	t.m.Landed(w.j, l)
	t.m.recorder.queueLanding(w, l)
}

// stepEnded is called when a step has ended. If the step panicked and the recovery failed too, no
// goroutine owns the entry any more, and stepEnded removes the entry. If another entry replaced it
// while the step ran, stepEnded releases its reservations with the payers.
func (t *tracker) stepEnded(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.entries[w.j.ID] != w:
		t.releaseReservations(w)
	case w.phase == working:
		t.remove(w)
	}
}

// replace removes an entry whose job this process has claimed again, under a later lease. If a step
// of the entry still runs, the entry keeps its reservations with the payers until the step ends.
func (t *tracker) replace(w *entry) {
	delete(t.entries, w.j.ID)
	t.releaseCapacity(w)
	if w.withoutCapacity {
		t.withoutCapacity--
		w.withoutCapacity = false
	}
	if w.phase != working {
		t.releaseReservations(w)
	}
}

// releaseCapacity releases the entry's capacity if it still has any.
func (t *tracker) releaseCapacity(w *entry) {
	if !w.capacityReleased {
		w.capacityReleased = true
		w.j.queue.inUse.release()
	}
}

// releaseReservations releases the entry's reservations with the payers.
func (t *tracker) releaseReservations(w *entry) {
	t.m.releaseReservations(w.j, func(solana.Signature) bool { return true })
}

// drop removes the entry of a job in flight. If this process now has the job under a later lease,
// the job has another entry, and that one stays.
func (t *tracker) drop(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(w)
}

// remove removes an entry, and releases its capacity and its reservations with the payers. The
// caller has locked mu.
func (t *tracker) remove(w *entry) {
	if t.entries[w.j.ID] != w {
		return
	}
	delete(t.entries, w.j.ID)
	t.releaseCapacity(w)
	if w.withoutCapacity {
		t.withoutCapacity--
		w.withoutCapacity = false
	}
	t.releaseReservations(w)
	t.claimRemaining()
}

// claimRemaining brings the next claim forward if the last one may have left due rows.
func (t *tracker) claimRemaining() {
	if t.m.rowsMayRemain.Load() {
		t.m.ClaimSoon()
	}
}

// addLanded tracks a job whose landing was recorded, until the landing is final.
func (t *tracker) addLanded(w *entry, l Landing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[w.j.ID] != w {
		return
	}
	t.remove(w)
	t.landed[w.j.ID] = t.newLandedEntry(Landed{Job: w.j, Landing: l})
}

// newLandedEntry makes an entry with the part of a landed job that Finalize needs.
func (t *tracker) newLandedEntry(l Landed) *landedEntry {
	for _, a := range l.Attempts() {
		if a.Signature == l.Signature {
			l.Ours, l.Purpose = true, a.Purpose
		}
	}
	l.Job = &Job{Lease: l.Lease, Row: t.m.Outcomes.TrimRow(l.Row), Kind: l.Kind, CreatedAt: l.CreatedAt}
	return &landedEntry{Landed: l}
}

// adoptLanded tracks a job whose landing another process recorded.
func (t *tracker) adoptLanded(j *Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	signature, slot := j.Row.Landed()
	t.landed[j.ID] = t.newLandedEntry(Landed{Job: j, Landing: Landing{Signature: signature, Slot: slot}})
}

// removeLanded stops tracking a landed job.
func (t *tracker) removeLanded(w *landedEntry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.landed[w.ID] == w {
		delete(t.landed, w.ID)
	}
}

// landedCount returns the number of landed jobs that are tracked.
func (t *tracker) landedCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.landed)
}

// leases returns all leases that this process tracks.
func (t *tracker) leases() map[Lease]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[Lease]bool, len(t.entries)+len(t.landed))
	for _, w := range t.entries {
		out[w.j.Lease] = true
	}
	for _, w := range t.landed {
		out[w.Lease] = true
	}
	return out
}

// dropLease drops the entry of a lease that this process has lost. While a step of the job runs,
// the entry stays, because the step's next write fails with ErrLeaseLost and the step then drops
// it.
func (t *tracker) dropLease(l Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.entries[l.ID]; w != nil && w.j.Lease == l && w.phase == tracking {
		t.remove(w)
	}
	if w := t.landed[l.ID]; w != nil && w.Lease == l && !w.busy {
		delete(t.landed, l.ID)
	}
}

// tracked lists the entries whose signatures are polled.
func (t *tracker) tracked() []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*entry, 0, len(t.entries))
	for _, w := range t.entries {
		if w.phase == tracking {
			out = append(out, w)
		}
	}
	return out
}

// perhapsFinal lists the landed jobs that may be final by now; all if nothing is known.
func (t *tracker) perhapsFinal() []*landedEntry {
	final := t.m.EstimateFinalized()
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*landedEntry, 0, len(t.landed))
	for _, w := range t.landed {
		if w.busy { // a search may write its slot
			continue
		}
		if waits := w.Slot+finalityMargin > final && w.Slot < final+longestFinality; final == 0 || !waits {
			out = append(out, w)
		}
	}
	return out
}

func (t *tracker) isTracked(w *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[w.j.ID] == w && w.phase == tracking
}

// setWorking moves an entry from tracking to working, for a step. It returns false when the entry
// is not in the phase tracking, or was removed.
func (t *tracker) setWorking(w *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[w.j.ID] != w || w.phase != tracking {
		return false
	}
	w.phase = working
	return true
}
