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

// undecided is a chain that loses sends for a while, however often they are repeated, and whose
// endpoints do not agree that an attempt can no longer land.
type undecided struct {
	txmgr.Chain
	loses, disagrees atomic.Bool
	lost             sync.Map // by the transaction's bytes
}

func (u *undecided) Send(ctx context.Context, raw []byte, first bool, minContextSlot uint64) error {
	if _, lost := u.lost.Load(string(raw)); lost || u.loses.Load() {
		u.lost.Store(string(raw), true)
		return nil
	}
	return u.Chain.Send(ctx, raw, first, minContextSlot)
}

func (u *undecided) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	l, err := u.Chain.Search(ctx, sigs)
	if u.disagrees.Load() {
		l.FinalizedHeight, l.ExpiredSlot = 0, 0
	}
	return l, err
}

// As many submissions as a process has places, and as many as make the pool busy, each with an
// attempt that is not known to be dead.
func TestAnUndecidedAttemptUsesNoCapacity(t *testing.T) {
	t.Parallel()
	const places = 50
	w := newWorld(t)
	w.deposit((places + 1) * sol) // enough for all, in any order
	u := &undecided{}
	u.loses.Store(true)
	u.disagrees.Store(true)
	r := w.assemble(parts{concurrency: places, chain: func(c txmgr.Chain) txmgr.Chain { u.Chain = c; return u }})
	w.run(r)
	for range places {
		req, _ := w.withdrawal(sol)
		w.submit(r, req)
	}
	w.eventually("all are signed", func() bool { return r.of("signed") == places })
	u.loses.Store(false)
	req, _ := w.withdrawal(sol)
	_, err := r.Submit(t.Context(), req)
	_ = wantCode(t, err, refusal.PoolBusy)

	w.clock.advance(6 * time.Minute)
	w.eventually("all are held for the end of their attempts", func() bool {
		b, err := w.store.Backlog(t.Context())
		must(t, err)
		return b.Held[txmgr.HoldExpiry] == places
	})
	if r.of("expired") != 0 || r.of("signed") != places {
		t.Errorf("%d attempts counted as dead and %d were signed, want none and %d", r.of("expired"), r.of("signed"), places)
	}
	if s := w.done(w.submit(r, req).ID); s.State != submission.Completed {
		t.Errorf("one that came later ended as %+v, failure %v", s, s.Failure)
	}

	// Its operator trusts an endpoint, and asks it alone.
	if ended, waiting, err := txmgr.DecideUndecided(t.Context(), w.store, u.Search); err != nil || ended != 0 || waiting != places {
		t.Errorf("%d were ended and %d wait (%v), want all to wait while the endpoints disagree", ended, waiting, err)
	}
	total := 0
	w.eventually("none is undecided by what the endpoint says", func() bool {
		ended, waiting, err := txmgr.DecideUndecided(t.Context(), w.store, w.rpc.Search)
		must(t, err)
		total += ended
		return waiting == 0
	})
	if total != places {
		t.Errorf("%d were ended, want %d", total, places)
	}
	w.eventually("the relay goes on with them", func() bool { return r.of("signed") > places+1 })
}
