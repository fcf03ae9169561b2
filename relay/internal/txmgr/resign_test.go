package txmgr_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// failingChain is a chain on which every sent transaction fails with a temporary error, although its
// simulation succeeds.
type failingChain struct {
	txmgr.Chain
	sent sync.Map // by signature
}

func (f *failingChain) Send(_ context.Context, raw []byte, _ onchain.Sending, _ uint64) error {
	tx, err := solana.TransactionFromBytes(raw)
	if err == nil {
		f.sent.Store(tx.Signatures[0], true)
	}
	return err
}

func (f *failingChain) fail(sigs []solana.Signature, statuses []*onchain.Status) []*onchain.Status {
	for i, s := range sigs {
		if _, sent := f.sent.Load(s); sent {
			statuses[i] = &onchain.Status{Slot: 1, Confirmation: onchain.Finalized, Err: &shieldpool.TransactionError{
				Kind: "InstructionError", Instruction: shieldpool.PoolInstruction, Detail: "Custom", Custom: 0x1037,
			}}
		}
	}
	return statuses
}

func (f *failingChain) Statuses(ctx context.Context, sigs []solana.Signature) ([]*onchain.Status, uint64, error) {
	statuses, slot, err := f.Chain.Statuses(ctx, sigs)
	if err == nil {
		statuses = f.fail(sigs, statuses)
	}
	return statuses, slot, err
}

func (f *failingChain) Search(ctx context.Context, sigs []solana.Signature) (onchain.SearchResult, error) {
	result, err := f.Chain.Search(ctx, sigs)
	if err == nil {
		result.Statuses = f.fail(sigs, result.Statuses)
	}
	return result, err
}

// TestRepeatedPaidFailuresBackOffAndEnd: each failure on the chain costs the relay a fee, and the
// client nothing.
func TestRepeatedPaidFailuresBackOffAndEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.assemble(parts{chain: func(c txmgr.Chain) txmgr.Chain { return &failingChain{Chain: c} }})
	w.run(r)
	req, _ := w.withdrawal(sol)
	id := w.submit(r, req).ID
	// The database does not use the test's clock, so the attempts are made older.
	pass := func(d time.Duration) {
		_, err := w.store.Pool.Exec(t.Context(), `UPDATE attempts SET created_at = created_at - $1::interval`, d)
		must(t, err)
		_, err = w.store.Pool.Exec(t.Context(), `UPDATE submissions SET due_at = now() WHERE due_at IS NOT NULL`)
		must(t, err)
		r.ClaimSoon()
	}
	delay := 30 * time.Second
	for signed := 2; signed < 8; signed++ {
		w.eventually("the submission is held after its failure", func() bool { return r.count("signed") == signed && w.heldBy(submission.HoldFailing) == 1 })
		if w.countBusy() != 0 {
			t.Error("the held submission keeps the pool busy")
		}
		before := r.count("held")
		pass(delay - 10*time.Second)
		w.eventually("the submission is tried too early, and held again", func() bool { return r.count("held") > before && w.heldBy(submission.HoldFailing) == 1 })
		if n := r.count("signed"); n != signed {
			t.Fatalf("%d attempts are signed, want %d until %s have passed", n, signed, delay)
		}
		pass(10 * time.Second)
		delay = min(2*delay, 8*time.Minute)
	}
	s := w.done(id)
	if s.State != submission.Failed || s.Failure.Code != refusal.ProgramError || r.count("signed") != 8 {
		t.Errorf("after %d signatures the submission is %+v, failure %v; want it failed with %[4]s after 8", r.count("signed"), s, s.Failure, refusal.ProgramError)
	}
	_, err := r.Submit(t.Context(), req)
	_ = wantCode(t, err, refusal.RateLimited) // the note is refused for a while, in any submission
}
