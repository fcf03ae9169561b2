package ledger

import (
	"context"
	"testing"

	"github.com/relaypool/relaypool/relay/onchain"
)

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
		"a payment of another payer":                  {change: func(p *onchain.Payment) { p.FeePayer = otherKey }, final: 5, calls: 1},
		"a block whose balances contradict the chain": {change: func(p *onchain.Payment) { p.Before += 7 }, final: 5, calls: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			r := w.reconciler(func(o *ReconcilerOptions) {
				o.Finalized = func(_ context.Context, slot uint64) uint64 {
					if slot != 5 && slot != 3 {
						t.Errorf("the chain is read for slot %d, want that of the newest payment", slot)
					}
					return test.final
				}
			})
			w.fund(3, 1e9)
			w.reconcile(r)
			w.transfer(5)
			w.transfer(5)
			last := *w.payments[2]
			test.change(&last)
			w.blockPayments[5] = []*onchain.Payment{w.payments[1], &last}
			w.reconcile(r)
			w.reconcile(r) // what the first pass could not use is read now
			w.checkWholeHistory()
			if n := w.paymentCalls - 1; n != test.calls {
				t.Errorf("%d payments were read besides that from others, want %d", n, test.calls)
			}
		})
	}
}
