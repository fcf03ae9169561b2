package txmgr

import (
	"context"
	"errors"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// missesUntilSearch is the number of polls in a row that miss a confirmed signature before all
// history is searched for it. Fewer misses prove little, because an endpoint may lag behind.
const missesUntilSearch = 5

// applyLandedStatuses acts on the recent statuses of a batch of landed jobs.
func (t *tracker) applyLandedStatuses(ctx context.Context, batch []*landedEntry, statuses []*onchain.Status) {
	var final []*landedEntry
	t.mu.Lock()
	var missed []*landedEntry
	for i, w := range batch {
		switch st := statuses[i]; {
		case t.landed[w.ID] != w || w.busy || st != nil && st.Unverified:
		case st != nil && st.Err == nil && st.Confirmation.AtLeast(onchain.Finalized):
			w.Slot, w.busy = st.Slot, true
			final = append(final, w)
		case st != nil && st.Err == nil:
			w.missed = 0
		default:
			if w.missed++; w.missed >= missesUntilSearch {
				w.missed, w.busy = 0, true
				missed = append(missed, w)
			}
		}
	}
	t.mu.Unlock()
	t.m.recorder.queueFinalized(final)
	if len(missed) > 0 {
		t.m.steps.Go(func() {
			ctx, cancel := t.m.stepContext(ctx)
			defer cancel()
			t.searchMissed(ctx, missed)
		})
	}
}

// searchMissed searches all history for landings that the recent statuses do not contain, because
// recent statuses go back only some 150 slots. A landing that all history lacks too was rolled
// back, provided that the history covers the slot of the landing.
func (t *tracker) searchMissed(ctx context.Context, missed []*landedEntry) {
	sigs := make([]solana.Signature, len(missed))
	for i, w := range missed {
		sigs[i] = w.Signature
	}
	result, err := t.m.Chain.Search(ctx, sigs)
	if err != nil {
		t.m.Log.WarnContext(ctx, "searching confirmed signatures failed", "signatures", len(sigs), "error", err)
	}
	var final []*landedEntry
	for i, w := range missed {
		var st *onchain.Status
		if err == nil {
			st = result.Statuses[i]
		}
		switch {
		case err != nil || !isConclusive(result, st, w.Slot):
			t.mu.Lock()
			w.busy = false
			t.mu.Unlock()
		case st != nil && st.Err == nil:
			w.Slot = st.Slot
			final = append(final, w)
		default:
			t.reopen(ctx, w)
		}
	}
	t.m.recorder.queueFinalized(final)
}

// isConclusive reports whether a search decides if a transaction that landed in the slot is final
// or was rolled back. An unverified status decides nothing. Neither does a missing status while
// FinalizedHeight is 0, because no second endpoint then confirms the search.
func isConclusive(result onchain.SearchResult, st *onchain.Status, slot uint64) bool {
	if st == nil {
		return result.FirstAvailable <= slot && result.Slot >= slot && result.FinalizedHeight > 0
	}
	return !st.Unverified && st.Confirmation.AtLeast(onchain.Finalized)
}

// reopen sets a landed job back to processing, after the fork with its landing died. As always, the
// process that claims the job next resolves the job's attempts first.
func (t *tracker) reopen(ctx context.Context, w *landedEntry) {
	err := t.m.Store.Reopen(ctx, w.Lease)
	if err == nil {
		t.m.Observer.Attempt("reopened")
		t.m.Log.WarnContext(ctx, "confirmed transaction rolled back by a fork", "request_id", w.ID)
		err = t.m.Store.Release(ctx, w.Lease, 0, "")
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		t.m.Log.WarnContext(ctx, "recording a rollback failed; retrying", "request_id", w.ID, "error", err)
		t.mu.Lock()
		w.busy = false
		t.mu.Unlock()
		return
	}
	t.removeLanded(w)
	t.m.ClaimSoon()
}
