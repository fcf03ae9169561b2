package sweep_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/sweep"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// failing is a chain on which every sent transaction fails, finalized, although its simulation
// succeeds. Its blockhash changes with each send.
type failing struct {
	sweep.Chain
	mu   sync.Mutex
	sent int
}

func (f *failing) Send(context.Context, []byte, bool, uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	return nil
}

func (f *failing) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	hash, err := f.Chain.LatestBlockhash(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	hash.Hash[0], hash.Hash[1] = byte(f.sent), byte(f.sent>>8)
	return hash, err
}

func (*failing) Search(_ context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	look := onchain.SearchResult{Statuses: make([]*onchain.Status, len(signatures)), Slot: 1}
	for i := range look.Statuses {
		look.Statuses[i] = &onchain.Status{Slot: 1, Confirmation: onchain.Finalized, Err: &shieldpool.TransactionError{Kind: "AccountInUse"}}
	}
	return look, nil
}

// TestASweepThatKeepsFailingGivesUp: each failure costs a fee, and a person has to find the cause.
func TestASweepThatKeepsFailingGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, to := w.key("old", 2*sol), w.key("new", sol)
	c := &failing{Chain: w.endpoints()}
	r, err := w.sweeper(c).All(w.context(), signers(old), to.PublicKey())
	if unfinished := (*sweep.Unfinished)(nil); err == nil || errors.As(err, &unfinished) {
		t.Errorf("it ends with %v, want that it gave up", err)
	}
	if r.Failed != 5 || r.Fees != 5*fee || c.sent != 5 {
		t.Errorf("it did %+v with %d transactions, want 5 that failed", r, c.sent)
	}
}
