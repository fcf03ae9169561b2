package txmgr

import (
	"context"
	"slices"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// rebroadcast sends every live attempt again, byte for byte and without preflight, except
// attempts that preflight refused permanently.
func (t *tracker) rebroadcast(ctx context.Context, w *entry) {
	attempts := make([]Attempt, 0, len(w.j.Live))
	for _, a := range slices.Backward(w.j.Live) { // the newest pays most
		if !a.Rejected {
			attempts = append(attempts, a)
		}
	}
	id := w.j.ID
	started := t.sends.TryGo(func() error {
		for i := range attempts {
			t.m.Observer.Attempt("rebroadcast")
			t.m.sendLane(ctx, &attempts[i], false)
			if err := t.m.broadcast(ctx, &attempts[i], onchain.Sending{}); err != nil {
				t.m.Log.DebugContext(ctx, "rebroadcast timed out", "request_id", id, "error", err)
			}
		}
		return nil
	})
	if started {
		w.rebroadcasts++
		w.rebroadcastAt = t.m.Now().Add(rebroadcastAfter(w.rebroadcasts, t.m.SlotDuration()))
	}
}

// rebroadcastAfter is the pause before the n-th rebroadcast, counted from 0: 2 slots before each
// of the first four, then 4, so that each leader gets the transaction. A node sends what it gets to
// the leaders of the next slots, and what a leader does not take is lost.
func rebroadcastAfter(n int, slot time.Duration) time.Duration {
	if n < 4 {
		return 2 * slot
	}
	return 4 * slot
}

// sendWorkers is the largest number of concurrent rebroadcasts. If no worker is free, a
// rebroadcast is postponed to the next poll, so that hanging sends do not block the polling.
const sendWorkers = 64

// processedTimeout is how long the next rebroadcast of a transaction is postponed while the
// transaction is reported as processed, but not yet as confirmed.
const processedTimeout = 3 * time.Second
