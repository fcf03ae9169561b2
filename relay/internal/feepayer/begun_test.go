package feepayer

import (
	"testing"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestEndingWorkLeavesThePayersMinimumBalance: a payer that ends work keeps the
// rent-exempt minimum. With less, the network refuses the transaction, and the payer ends no
// work.
func TestEndingWorkLeavesThePayersMinimumBalance(t *testing.T) {
	t.Parallel()
	const cost = 5000
	tests := map[string]struct {
		holds uint64
		want  refusal.Code
	}{
		"the cost and the rent-exempt minimum": {cost + shieldpool.RentExempt, ""},
		"a lamport less":                       {cost + shieldpool.RentExempt - 1, refusal.FeePayerEmpty},
		"the cost alone":                       {cost, refusal.FeePayerEmpty},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPayers(t, &wallets{lamports: []uint64{test.holds}, slot: 1}, func(o *Options) { o.MinBalance = 1 << 40 })
			refresh(t, p)
			_, err := p.Pick(t.Context(), cost, true)
			checkCode(t, err, test.want)
		})
	}
}
