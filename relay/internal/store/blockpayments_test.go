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
	payment := func(n byte, slot uint64) *onchain.Payment {
		return &onchain.Payment{
			Signature: solana.Signature{n, 63: 9}, Slot: slot, At: time.Date(2026, 11, 29, 7, 0, 0, 0, time.UTC), FeePayer: payerOne, Failed: n%2 == 0,
			Fee: 5010, SignatureFees: 5000, Created: 1_781_760, CreatedSizes: []uint64{0, 165}, Before: 1<<63 + 1, After: 1<<63 - 1_786_769,
		}
	}
	var want []*onchain.Payment
	check := func(slots ...uint64) {
		t.Helper()
		found, err := l.BlockPayments(t.Context(), slots)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]*onchain.Payment, 0, len(found))
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
	l.KeepPayments(t.Context(), 100, []*onchain.Payment{payment(1, 100), payment(2, 100)})
	l.KeepPayments(t.Context(), 101, []*onchain.Payment{payment(3, 101)})
	want = []*onchain.Payment{payment(1, 100), payment(2, 100), payment(3, 101)}
	check(99, 100, 101)
	want = want[2:]
	check(101)
	l.KeepPayments(t.Context(), 101, []*onchain.Payment{payment(4, 101)}) // the block that replaces one of a fork
	want = []*onchain.Payment{payment(4, 101)}
	check(101)
	l.KeepPayments(t.Context(), 101+keptPaymentSlots, []*onchain.Payment{payment(5, 101+keptPaymentSlots)})
	want = append(want, payment(5, 101+keptPaymentSlots))
	check(100, 101, 101+keptPaymentSlots)
}
