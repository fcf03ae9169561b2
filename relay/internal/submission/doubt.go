package submission

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

// HoldSecond is the reason while one endpoint says what came of a submission, and no second one does.
// An outcome waits for it; new work does not.
const HoldSecond = "second_endpoint"

const (
	// doubtAge is how long an outcome may be one endpoint's word before the
	// submission counts as waiting: others are often a slot or two behind.
	doubtAge = 2 * time.Second
	// mostDoubted is how many submissions may wait beside those that have a place:
	// they stay in memory, some kilobytes each.
	mostDoubted = 10_000
)

// doubt notes that an outcome is the word of one endpoint. A submission for which
// that lasts gives its place back: it is followed and sent again all the same.
func (t *tracker) doubt(w *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.e.Now()
	if w.doubted.IsZero() {
		w.doubted = now
	}
	if w.freed || t.entries[w.c.ID] != w || now.Sub(w.doubted) < doubtAge || t.placeless >= mostDoubted {
		return
	}
	t.free(w)
	t.placeless++
	w.placeless = true
	if t.e.more.Load() {
		t.e.Nudge()
	}
}

// doubts reports whether the submission waits for a second endpoint.
func (t *tracker) doubts(w *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !w.noted && !w.doubted.IsZero() && t.e.Now().Sub(w.doubted) >= doubtAge
}

// noteDoubts tells the database what waits for a second endpoint, so that it keeps
// no pool busy. What could not be told is told at the next poll.
func (t *tracker) noteDoubts(ctx context.Context, flying []*entry) {
	var batch []*entry
	var leases []Lease
	for _, w := range flying {
		if len(batch) < statusBatch && t.doubts(w) {
			batch, leases = append(batch, w), append(leases, w.c.Lease())
		}
	}
	if len(batch) == 0 || !t.noting.TryLock() {
		return
	}
	t.e.steps.Go(func() {
		defer t.noting.Unlock()
		ctx, cancel := t.e.unhurried(ctx)
		defer cancel()
		if err := t.e.Store.NoteHold(ctx, leases, HoldSecond); err != nil {
			t.e.Log.DebugContext(ctx, "Could not note what waits for a second endpoint, trying again", "submissions", len(leases), "error", err)
			return
		}
		t.e.Log.WarnContext(ctx, "Outcomes wait for a second endpoint to say the same", "submissions", len(leases))
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, w := range batch {
			w.noted = true
		}
	})
}

// errUnverified says that one endpoint alone fails a transaction.
func errUnverified(method string) error {
	return &ledger.Unavailable{Method: method, Kind: ledger.KindUnverified, Detail: "one endpoint says that the transaction fails, and no second one fails it the same way"}
}
