package txmgr_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// roomInQueue is how many submissions may wait with the newest root, with a root history of 100: 49 land
// before the last one would be too late, and an eighth of them is kept.
const roomInQueue = 49 - 49/8 + 1

// A submission that waits for an archive or for a cap does not land, so it pushes no root out of
// the root history. If it counted, the pool would stay busy for ever.
func TestHeldSubmissionsDoNotKeepThePoolBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	for range roomInQueue {
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

// countedStore counts how often the queue is counted.
type countedStore struct {
	submission.Store
	counts atomic.Int64
}

func (s *countedStore) QueueByRoot(ctx context.Context, pool solana.PublicKey, oldest uint64) (submission.QueueByRoot, error) {
	s.counts.Add(1)
	return s.Store.QueueByRoot(ctx, pool, oldest)
}

// When all clients of a busy pool try again and again, the counts would take the database's whole time.
func TestRefusalsOfABusyPoolShareACount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := new(countedStore)
	r := w.assemble(parts{store: func(s submission.Store) submission.Store { db.Store = s; return db }})
	for range roomInQueue {
		req, _ := w.withdrawal(sol)
		w.submit(r, req)
	}
	w.eventually("a request is refused without a count", func() bool {
		before := db.counts.Load()
		req, _ := w.withdrawal(sol)
		_, err := r.Submit(t.Context(), req)
		_ = wantCode(t, err, refusal.PoolBusy)
		return db.counts.Load() == before
	})
}
