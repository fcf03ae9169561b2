package store

import (
	"slices"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestPaymentsInBlocksAreKept(t *testing.T) {
	t.Parallel()
	l := open(t).Ledger()
	payment := func(n byte, payer solana.PublicKey, slot uint64) *onchain.Payment {
		return &onchain.Payment{
			Signature: solana.Signature{n, 63: 9}, Slot: slot, At: time.Date(2026, 11, 29, 7, 0, 0, 0, time.UTC), FeePayer: payer, Failed: n%2 == 0,
			Fee: 5010, SignatureFees: 5000, Created: 1_781_760, CreatedSizes: []uint64{0, 165}, Before: 1<<63 + 1, After: 1<<63 - 1_786_769,
		}
	}
	keep := func(slot uint64, payments ...*onchain.Payment) {
		t.Helper()
		if err := l.KeepPayments(t.Context(), slot, payments); err != nil {
			t.Fatal(err)
		}
	}
	check := func(payer solana.PublicKey, slots []uint64, want ...*onchain.Payment) {
		t.Helper()
		found, err := l.BlockPayments(t.Context(), payer, slots)
		if err != nil {
			t.Fatal(err)
		}
		var got []*onchain.Payment
		for signature, p := range found {
			if p.Signature != signature {
				t.Errorf("the payment of %s is found as that of %s", p.Signature, signature)
			}
			got = append(got, p)
		}
		slices.SortFunc(got, func(a, b *onchain.Payment) int { return int(a.Signature[0]) - int(b.Signature[0]) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("payments in the slots %d differ (-want +got):\n%s", slots, diff)
		}
	}
	one, two, three := payment(1, payerOne, 100), payment(2, payerOne, 100), payment(3, payerTwo, 100)
	keep(100, one, three, two)
	keep(101, payment(4, payerOne, 101))
	check(payerOne, []uint64{99, 100, 101}, one, two, payment(4, payerOne, 101))
	check(payerTwo, []uint64{99, 100, 101}, three)
	check(payerOne, []uint64{101}, payment(4, payerOne, 101))
	keep(101, payment(5, payerOne, 101)) // the block that replaces one of a fork
	check(payerOne, []uint64{101}, payment(5, payerOne, 101))
	keep(102)
	const later = 101 + keptPaymentSlots
	keep(later, payment(6, payerTwo, later))
	check(payerOne, []uint64{100, 101}, payment(5, payerOne, 101))
	check(payerTwo, []uint64{100, later}, payment(6, payerTwo, later))
}
