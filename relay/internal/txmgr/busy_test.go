package txmgr_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// A submission that waits for an archive or for a cap does not land, so it pushes no root out of
// the root history. If it counted, the pool would stay busy for ever.
func TestHeldSubmissionsDoNotKeepThePoolBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	for range 50 {
		req, _ := w.withdrawal(sol)
		w.submit(r, req)
	}
	req, _ := w.withdrawal(sol)
	_, err := r.Submit(t.Context(), req)
	_ = wantCode(t, err, refusal.PoolBusy)
	worker := uuid.New()
	_, err = w.store.Heartbeat(t.Context(), txmgr.Worker{ID: worker}, testTimeout)
	must(t, err)
	claimed, err := w.store.Claim(t.Context(), worker, 64)
	must(t, err)
	for i, c := range claimed {
		reason := txmgr.HoldHistory
		if i%2 == 0 {
			reason = string(refusal.SpendCapReached)
		}
		must(t, w.store.Release(t.Context(), c.Lease, testTimeout, reason))
	}
	w.eventually("the pool is not busy", func() bool {
		_, err := r.Submit(t.Context(), req)
		return err == nil
	})
}
