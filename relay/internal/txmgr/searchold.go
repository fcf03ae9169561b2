package txmgr

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// oldAfter is the age from which on attempts are searched in all history, even if the slots that
// the relay measured are so long that a blockhash lives longer. The bound is needed because no
// slots are measured while the chain stands still. A search that comes too early does no harm.
const oldAfter = onchain.BlockhashBlocks * onchain.NominalSlot

// resolveInterval is the interval at which old attempts are searched again.
const resolveInterval = 2 * time.Second

// resolveOld resolves attempts that are old enough to be dead, or to be followed by an early attempt,
// many in one search. Only one search runs at a time. It runs concurrently with the polling.
func (t *tracker) resolveOld(ctx context.Context, inFlight []*entry) {
	if !t.resolving.TryLock() {
		return
	}
	var batch []*entry
	var sigs []solana.Signature
	for _, w := range inFlight {
		// Live may be read here only while the entry is in the phase tracking.
		if !t.isTracked(w) || len(sigs)+len(w.j.Live) > statusBatch || !t.mustSearch(w) || !t.setWorking(w) {
			continue
		}
		w.resolveAt = t.m.Now().Add(resolveInterval)
		batch, sigs = append(batch, w), append(sigs, signaturesOf(w.j.Live)...)
	}
	if len(batch) == 0 {
		t.resolving.Unlock()
		return
	}
	t.m.steps.Go(func() {
		defer t.resolving.Unlock()
		ctx, cancel := t.m.stepContext(ctx)
		defer cancel()
		result, err := t.m.Chain.Search(ctx, sigs)
		if err != nil {
			t.m.Log.InfoContext(ctx, "searching old attempts failed", "signatures", len(sigs), "error", err)
		}
		for _, w := range batch {
			n := len(w.j.Live)
			if err != nil {
				t.track(w)
				continue
			}
			ofJob := result
			ofJob.Statuses, result.Statuses = result.Statuses[:n], result.Statuses[n:]
			w.j.searchResult = &ofJob
			t.m.steps.Go(func() {
				ctx, cancel := t.m.stepContext(ctx)
				defer cancel()
				t.m.step(ctx, w)
			})
		}
	})
}

// mustSearch reports whether the attempts have to be searched in all history now.
func (t *tracker) mustSearch(w *entry) bool {
	if len(w.j.Live) == 0 {
		return false
	}
	now, lastSigned := t.m.Now(), w.j.Live[len(w.j.Live)-1].CreatedAt
	t.mu.Lock()
	defer t.mu.Unlock()
	// An outcome that only one endpoint has reported for a while is also searched in all history.
	// By the time a second endpoint answers again, the recent statuses may no longer contain it.
	longUnverified := !w.unverifiedSince.IsZero() && now.Sub(w.unverifiedSince) >= unverifiedAfter
	return (longUnverified || t.m.EarlyAttemptDue(w.j) || now.Sub(lastSigned) > min(onchain.BlockhashLife(t.m.SlotDuration()), oldAfter)) && !now.Before(w.resolveAt)
}
