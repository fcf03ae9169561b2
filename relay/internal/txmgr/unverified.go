package txmgr

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// HoldSecondEndpoint is the reason while one endpoint says what came of a job, and no second one does.
// An outcome waits for it; new work does not.
const HoldSecondEndpoint = "second_endpoint"

const (
	// unverifiedAfter is how long an outcome may be one endpoint's word before the
	// job counts as waiting: others are often a slot or two behind.
	unverifiedAfter = 2 * time.Second
	// maxUnverified is how many jobs may wait beside those that have a place:
	// they stay in memory, some kilobytes each.
	maxUnverified = 10_000
)

// markUnverified notes that an outcome is the word of one endpoint. A job for which
// that lasts gives its place back: it is followed and sent again all the same.
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
	if w.placeReleased || now.Sub(w.unverifiedSince) < unverifiedAfter || t.placeless >= maxUnverified {
		return
	}
	t.releasePlace(w)
	t.placeless++
	w.placeless = true
	if t.m.mayClaimMore.Load() {
		t.m.ClaimSoon()
	}
}

// isUnverified reports whether the job waits for a second endpoint.
func (t *tracker) isUnverified(w *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !w.recorded && !w.unverifiedSince.IsZero() && t.m.Now().Sub(w.unverifiedSince) >= unverifiedAfter
}

// recordUnverified tells the database what waits for a second endpoint, so that it keeps
// no pool busy. What could not be told is told at the next poll.
func (t *tracker) recordUnverified(ctx context.Context, flying []*entry) {
	var batch []*entry
	var leases []Lease
	for _, w := range flying {
		if len(batch) < statusBatch && t.isUnverified(w) {
			batch, leases = append(batch, w), append(leases, w.j.Lease)
		}
	}
	if len(batch) == 0 || !t.recording.TryLock() {
		return
	}
	t.m.steps.Go(func() {
		defer t.recording.Unlock()
		ctx, cancel := t.m.stepContext(ctx)
		defer cancel()
		if err := t.m.Store.MarkHeld(ctx, leases, HoldSecondEndpoint); err != nil {
			t.m.Log.DebugContext(ctx, "recording what waits for a second endpoint failed; retrying", "submissions", len(leases), "error", err)
			return
		}
		t.m.Log.WarnContext(ctx, "outcomes wait for a second endpoint to confirm them", "submissions", len(leases))
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, w := range batch {
			w.recorded = true
		}
	})
}

// errUnverified says that one endpoint alone fails a transaction.
func errUnverified(method string) error {
	return &onchain.Unavailable{Method: method, Kind: onchain.KindUnverified, Detail: "one endpoint says that the transaction fails, and no second one fails it the same way"}
}
