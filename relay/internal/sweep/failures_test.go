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

// failingChain is a chain on which every sent transaction fails and is finalized,
// although its simulation succeeds. Its blockhash changes with each send.
type failingChain struct {
	sweep.Chain
	mu   sync.Mutex
	sent int
}

func (f *failingChain) Send(context.Context, []byte, onchain.Sending, uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	return nil
}

func (f *failingChain) LatestBlockhash(ctx context.Context) (onchain.Blockhash, error) {
	hash, err := f.Chain.LatestBlockhash(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	hash.Hash[0], hash.Hash[1] = byte(f.sent), byte(f.sent>>8)
	return hash, err
}

func (*failingChain) Search(_ context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
	result := onchain.SearchResult{Statuses: make([]*onchain.Status, len(signatures)), Slot: 1}
	for i := range result.Statuses {
		result.Statuses[i] = &onchain.Status{Slot: 1, Confirmation: onchain.Finalized, Err: &shieldpool.TransactionError{Kind: "AccountInUse"}}
	}
	return result, nil
}

// TestSweepGivesUpAfterFiveFailures: each failure costs a fee, and an operator has to
// find the cause.
func TestSweepGivesUpAfterFiveFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, to := w.key("old", 2*sol), w.key("new", sol)
	c := &failingChain{Chain: w.endpoints()}
	r, err := w.sweeper(c).All(w.context(), signers(old), to.PublicKey())
	if unfinished := (*sweep.Unfinished)(nil); err == nil || errors.As(err, &unfinished) {
		t.Errorf("All returns %v, want an error other than Unfinished", err)
	}
	if r.Failed != 5 || r.Fees != 5*fee || c.sent != 5 {
		t.Errorf("result is %+v after %d sends, want 5 failures", r, c.sent)
	}
}
