package txmgr_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
)

// lagging is a chain that, while lags is set, has reached only slot 1 and knows no signature.
type lagging struct {
	txmgr.Chain
	lags     atomic.Bool
	searched atomic.Int64
}

func (l *lagging) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	s, at, err := l.Chain.Statuses(ctx, sigs)
	if l.lags.Load() {
		clear(s)
	} else {
		capCommitment(s, onchain.Confirmed)
	}
	return s, at, err
}

func (l *lagging) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	result, err := l.Chain.Search(ctx, sigs)
	if l.lags.Load() {
		l.searched.Add(1)
		clear(result.Statuses)
		result.Slot, result.FinalizedSlot, result.FinalizedHeight = 1, 1, 1
	}
	return result, err
}

func TestLaggingHistoryRollsNothingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	behind := new(lagging)
	r := w.relay(func(c txmgr.Chain) txmgr.Chain { behind.Chain = c; return behind })
	w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	if s := w.done(id); s.State != submission.Completed {
		t.Fatalf("the submission ended as %+v, want it completed", s)
	}
	behind.lags.Store(true)
	w.eventually("the landing was searched", func() bool { return behind.searched.Load() > 2 || r.count("reopened") > 0 })
	if s := w.get(id); s.State != submission.Completed || r.count("reopened") != 0 {
		t.Errorf("a confirmed submission was rolled back because a lagging node does not know its landing yet: %+v", s)
	}
}
