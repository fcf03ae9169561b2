package bank_test

import (
	"testing"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// The leader of slots 4 to 7 is down, and the leader of slots 8 to 11 takes nothing below 500.
func TestLeadersAreDownOrTakeOnlyWhatPaysEnough(t *testing.T) {
	t.Parallel()
	opts := options(unitConsumer())
	opts.Leaders = &bank.Leaders{Down: func(window uint64) bool { return window == 1 }, Price: func(window uint64) uint64 {
		if window == 2 {
			return 500
		}
		return 0
	}}
	b, err := bank.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	h := &fillableLedger{ledger: &ledger{Bank: b, t: t, wallet: key("wallet")}}
	h.mustLand(key("faucet"), transferFrom("faucet", "a", walletStart))
	h.Advance(2)
	h.hash = h.blockhash(bank.Processed)
	wantOpen := func(slot uint64) {
		t.Helper()
		h.Read(bank.Processed, func(v bank.View) {
			if v.Slot() != slot {
				t.Fatalf("the open slot is %d, want %d", v.Slot(), slot)
			}
		})
	}
	send := func(price uint64) *bank.Transaction {
		tx := h.call("a", 1000, 2000, price)
		if _, err := h.Submit(tx); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	wantOpen(3)
	inTime := send(0)
	h.Advance(1)
	wantOpen(3)
	lost := send(1000)
	h.Advance(3)
	wantOpen(3)
	h.Advance(1)
	wantOpen(8)
	tooCheap, enough := send(499), send(500)
	h.Advance(4)
	wantOpen(12)
	for tx, want := range map[*bank.Transaction]uint64{inTime: 3, lost: 0, tooCheap: 0, enough: 8} {
		if got := h.slotOf(tx); got != want {
			t.Errorf("a transaction landed in slot %d, want %d (0 for never)", got, want)
		}
	}
	prices := map[uint64]uint64{8: 500, 9: 500, 10: 500, 11: 500} // of the other slots it is 0
	h.Read(bank.Processed, func(v bank.View) {
		for _, fee := range v.PrioritizationFees(nil) {
			if want := prices[fee.Slot]; fee.PrioritizationFee != want {
				t.Errorf("the lowest price of slot %d is %d, want %d", fee.Slot, fee.PrioritizationFee, want)
			}
			delete(prices, fee.Slot)
		}
	})
	if len(prices) > 0 {
		t.Errorf("the lowest prices of these slots are missing: %v", prices)
	}
}
