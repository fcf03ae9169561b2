package ledger

import (
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

func blockOf(payments ...onchain.Payment) *onchain.Block {
	b := new(onchain.Block)
	for i := range payments {
		b.Transactions = append(b.Transactions, onchain.BlockTransaction{Signature: payments[i].Signature, Payment: &payments[i]})
	}
	b.Transactions = append(b.Transactions, onchain.BlockTransaction{}) // its payment is not known
	return b
}

func TestPaymentsOfReadBlocksAreNotReadAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*onchain.Payment) // of the block's payment of the last transfer
		final  uint64                 // the newest final slot
		calls  int                    // besides the one for the funds, which came from others
	}{
		"a block that is final":                       {change: func(*onchain.Payment) {}, final: 5},
		"a block that is not final, though listed":    {change: func(*onchain.Payment) {}, final: 4, calls: 2},
		"a block of a fork":                           {change: func(p *onchain.Payment) { p.Slot++ }, final: 5, calls: 1},
		"a block whose balances contradict the chain": {change: func(p *onchain.Payment) { p.Before += 7 }, final: 5, calls: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			recent := NewRecentPayments([]solana.PublicKey{payerKey}, func() uint64 { return test.final })
			r := w.reconciler(func(o *ReconcilerOptions) { o.Recent = recent })
			w.fund(3, 1e9)
			w.transfer(5)
			w.transfer(5)
			last := *w.payments[2]
			test.change(&last)
			recent.Add(blockOf(*w.payments[0], *w.payments[1], last))
			w.reconcile(r)
			w.reconcile(r) // what the first pass could not use is read now
			w.checkWholeHistory()
			if n := w.paymentCalls - 1; n != test.calls {
				t.Errorf("%d payments were read besides that from others, want %d", n, test.calls)
			}
			if test.final == 5 && len(recent.newer) != 0 {
				t.Errorf("%d payments are kept after they were used, want none", len(recent.newer))
			}
		})
	}
}

func TestRecentPaymentsAreBounded(t *testing.T) {
	t.Parallel()
	recent := NewRecentPayments([]solana.PublicKey{payerKey}, func() uint64 { return 0 })
	signature := func(n int) solana.Signature { return solana.Signature{byte(n), byte(n >> 8), byte(n >> 16)} }
	const all = 3*recentLimit + 1
	for n := range all {
		recent.Add(blockOf(onchain.Payment{Signature: signature(n), FeePayer: payerKey}))
	}
	if n := len(recent.newer) + len(recent.older); n > 2*recentLimit {
		t.Errorf("%d payments are kept, want at most %d", n, 2*recentLimit)
	}
	if recent.take(signature(all-recentLimit), payerKey, 0) == nil || recent.take(signature(0), payerKey, 0) != nil {
		t.Error("want the newest payments kept, and the oldest ones dropped")
	}
	if recent.take(signature(all-1), otherKey, 0) != nil {
		t.Error("a payment was returned for another payer")
	}
}
