package feepayer

import (
	"testing"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestEndingWorkKeepsTheRentExemptMinimum: a payer that pays for the end of started work keeps
// the rent-exempt minimum. With less, the network would refuse the transaction.
func TestEndingWorkKeepsTheRentExemptMinimum(t *testing.T) {
	t.Parallel()
	const cost = 5000
	tests := map[string]struct {
		lamports uint64
		want     refusal.Code
	}{
		"the cost and the rent-exempt minimum": {cost + shieldpool.RentExempt, ""},
		"a lamport less than that":             {cost + shieldpool.RentExempt - 1, refusal.FeePayerEmpty},
		"only the cost":                        {cost, refusal.FeePayerEmpty},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPayers(t, &wallets{lamports: []uint64{test.lamports}, slot: 1}, func(o *Options) { o.MinBalance = 1 << 40 })
			refresh(t, p)
			_, err := p.Pick(t.Context(), cost, true)
			checkCode(t, err, test.want)
		})
	}
}
