package txmgr

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// HoldSecondEndpoint is the hold reason of a job whose outcome only one endpoint reports. The
// job waits until a second endpoint reports the outcome too. New jobs do not wait meanwhile.
const HoldSecondEndpoint = "second_endpoint"

const (
	// unverifiedAfter is how long only one endpoint may report an outcome before the job counts
	// as held. The delay is needed because other endpoints are often a slot or two behind.
	unverifiedAfter = 2 * time.Second
	// maxUnverified is the number of jobs that may wait in addition to the capacity. They
	// stay in memory, some kilobytes each.
	maxUnverified = 10_000
)

// markUnverified records that only one endpoint reports an outcome. If this lasts longer than
// unverifiedAfter, the job releases its capacity, but its attempts are still tracked and
// rebroadcast.
func (t *tracker) markUnverified(j *Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, now := t.entries[j.ID], t.m.Now()
	if w == nil || w.j != j {
		return
	}
	if w.unverifiedSince.IsZero() {
		w.unverifiedSince = now
	}
	if w.capacityReleased || now.Sub(w.unverifiedSince) < unverifiedAfter || t.withoutCapacity >= maxUnverified {
		return
	}
	t.releaseCapacity(w)
	t.withoutCapacity++
	w.withoutCapacity = true
	t.claimRemaining()
}

// mustRecordUnverified reports whether it still has to be written to the database that the job is
// held for a second endpoint.
func (t *tracker) mustRecordUnverified(w *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !w.unverifiedRecorded && !w.unverifiedSince.IsZero() && t.m.Now().Sub(w.unverifiedSince) >= unverifiedAfter
}

// recordUnverified writes to the database which jobs wait for a second endpoint. When a relay
// checks whether the pool is busy, it does not count these jobs. Failed writes are repeated at the
// next poll.
func (t *tracker) recordUnverified(ctx context.Context, inFlight []*entry) {
	var batch []*entry
	var leases []Lease
	for _, w := range inFlight {
		if len(batch) < statusBatch && t.mustRecordUnverified(w) {
			batch, leases = append(batch, w), append(leases, w.j.Lease)
		}
	}
	if len(batch) == 0 || !t.recordingUnverified.TryLock() {
		return
	}
	t.m.steps.Go(func() {
		defer t.recordingUnverified.Unlock()
		ctx, cancel := t.m.stepContext(ctx)
		defer cancel()
		if err := t.m.Store.MarkHeld(ctx, leases, HoldSecondEndpoint); err != nil {
			t.m.Log.DebugContext(ctx, "marking submissions as held for a second endpoint failed; retrying", "submissions", len(leases), "error", err)
			return
		}
		t.m.Log.WarnContext(ctx, "outcomes wait for a second endpoint to confirm them", "submissions", len(leases))
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, w := range batch {
			w.unverifiedRecorded = true
		}
	})
}

// errUnverified is the error for a failure that only one endpoint reports.
func errUnverified(method string) error {
	return &onchain.Unavailable{Method: method, Kind: onchain.KindUnverified, Detail: "one endpoint reports that the transaction fails, and no second one confirms it"}
}
