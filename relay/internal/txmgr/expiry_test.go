package txmgr_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

// undecided is a chain that loses, with all their rebroadcasts, transactions that are sent while
// loses is set. While disagrees is set, its endpoints do not agree that an attempt can no longer land.
type undecided struct {
	txmgr.Chain
	loses, disagrees atomic.Bool
	lost             sync.Map // by the transaction's bytes
}

func (u *undecided) Send(ctx context.Context, raw []byte, how onchain.Sending, minContextSlot uint64) error {
	if _, lost := u.lost.Load(string(raw)); lost || u.loses.Load() {
		u.lost.Store(string(raw), true)
		return nil
	}
	return u.Chain.Send(ctx, raw, how, minContextSlot)
}

func (u *undecided) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	l, err := u.Chain.Search(ctx, sigs)
	if u.disagrees.Load() {
		l.FinalizedHeight, l.ExpiredSlot = 0, 0
	}
	return l, err
}

// The submissions use all capacity of the process and keep the pool busy. Each has an attempt that
// is not known to be dead.
func TestAnUndecidedAttemptUsesNoCapacity(t *testing.T) {
	t.Parallel()
	const capacity = 50
	w := newWorld(t)
	w.deposit((capacity + 1) * sol) // enough for all withdrawals
	u := &undecided{}
	u.loses.Store(true)
	u.disagrees.Store(true)
	r := w.assemble(parts{concurrency: capacity, chain: func(c txmgr.Chain) txmgr.Chain { u.Chain = c; return u }})
	w.run(r)
	for range capacity {
		req, _ := w.withdrawal(sol)
		w.eventually("a submission is accepted", func() bool {
			_, err := r.Submit(t.Context(), req)
			if refused, ok := refusal.As(err); ok && refused.Code == refusal.PoolBusy {
				return false // for a moment another one waits for its next try, so room is kept
			}
			must(t, err)
			return true
		})
	}
	w.eventually("all are signed", func() bool { return r.count("signed") == capacity })
	u.loses.Store(false)
	req, _ := w.withdrawal(sol)
	_, err := r.Submit(t.Context(), req)
	_ = wantCode(t, err, refusal.PoolBusy)

	w.clock.advance(6 * time.Minute)
	w.eventually("all are held by chain_expiry", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Held[txmgr.HoldExpiry] == capacity
	})
	if r.count("expired") != 0 || r.count("signed") != capacity {
		t.Errorf("%d attempts expired and %d were signed, want none and %d", r.count("expired"), r.count("signed"), capacity)
	}
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Errorf("a later submission ended as %+v, failure %v; want it completed", s, s.Failure)
	}

	// The operator trusts one endpoint, and searches with that endpoint alone.
	if decided, waiting, err := txmgr.DecideUndecided(t.Context(), w.store, u.Search); err != nil || decided != 0 || waiting != capacity {
		t.Errorf("%d jobs are decided and %d wait (%v), want 0 and %d while the endpoints disagree", decided, waiting, err, capacity)
	}
	total := 0
	w.eventually("all jobs are decided by the endpoint's search", func() bool {
		decided, waiting, err := txmgr.DecideUndecided(t.Context(), w.store, w.rpc.Search)
		must(t, err)
		total += decided
		return waiting == 0
	})
	if total != capacity {
		t.Errorf("%d jobs are decided, want %d", total, capacity)
	}
	w.eventually("the relay signs new attempts for the jobs", func() bool { return r.count("signed") > capacity+1 })
}
