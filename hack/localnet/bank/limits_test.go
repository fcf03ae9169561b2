package bank_test

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// callUnits is the compute units of one call of unitConsumer, and callLimit is its compute
// limit. A block has room for nine calls of one payer: they all write the payer's
// account, whose limit is 12 million units.
const (
	callUnits = 1_300_000
	callLimit = 1_301_000
)

// unitConsumer is a program that uses compute units: its data is their number in thousands.
func unitConsumer() bank.Program {
	return bank.Program{
		ID:      address("consumer"),
		Account: bank.Account{Lamports: 1, Owner: solana.BPFLoaderUpgradeableProgramID, Executable: true},
		Process: func(v *bank.Invocation) error {
			return v.Consume(1000 * (uint64(v.Data[0]) + uint64(v.Data[1])<<8))
		},
	}
}

// fillableLedger is a ledger whose blocks a test can fill.
type fillableLedger struct {
	*ledger
	hash  solana.Hash
	calls uint64
}

func newFillableLedger(t testing.TB, limits bank.BlockLimits) *fillableLedger {
	t.Helper()
	opts := options(unitConsumer())
	opts.Limits = limits
	b, err := bank.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	h := &fillableLedger{ledger: &ledger{Bank: b, t: t, wallet: key("wallet")}}
	for _, name := range []string{"wallet", "a", "b", "c", "d", "e"} {
		h.mustLand(key("faucet"), transferFrom("faucet", name, walletStart))
	}
	h.Advance(1)
	h.hash = h.blockhash(bank.Processed)
	return h
}

// call makes a payer's transaction that uses a number of units, with a compute limit
// and a price.
func (h *fillableLedger) call(payer string, units, limit, price uint64) *bank.Transaction {
	h.t.Helper()
	h.calls++
	k := units / 1000
	// The data after the units differs, so that no two calls are the same.
	return h.sign(h.hash, []solana.PrivateKey{key(payer)}, unitLimit(uint32(limit)), unitPrice(price),
		solana.NewInstruction(address("consumer"), nil, []byte{byte(k), byte(k >> 8), byte(h.calls), byte(h.calls >> 8)}))
}

// slotOf returns the slot of a landed transaction, 0 when it has not landed.
func (h *fillableLedger) slotOf(tx *bank.Transaction) (slot uint64) {
	h.Read(bank.Processed, func(v bank.View) {
		if l := v.Transaction(tx.Signature()); l != nil {
			slot = l.Block.Slot
		}
	})
	return slot
}

func TestBlockLimitsComputeUnits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limits       bank.BlockLimits
		payers       []string
		units, limit uint64
		sent         int
		wantFirst    int
		wantNext     []int
	}{
		"one payer stops at 20 million": {
			payers: []string{"a"}, units: callUnits, limit: callLimit, sent: 32, wantFirst: 15, wantNext: []int{15, 2},
		},
		"only the used units count after a transaction has run": {
			payers: []string{"a"}, units: 100_000, limit: 1_400_000, sent: 200, wantFirst: 184, wantNext: []int{16},
		},
		"several payers share the block's 50 million": {
			payers: []string{"a", "b", "c", "d", "e"}, units: callUnits, limit: callLimit, sent: 45, wantFirst: 38, wantNext: []int{7},
		},
		"limits of the options apply": {
			limits: bank.BlockLimits{Account: 4_000_000, Block: 6_000_000},
			payers: []string{"a", "b"}, units: callUnits, limit: callLimit, sent: 6, wantFirst: 4, wantNext: []int{2},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFillableLedger(t, test.limits)
			got := 0
			for i := range test.sent {
				landed, err := h.Submit(h.call(test.payers[i%len(test.payers)], test.units, test.limit, 0))
				if err != nil {
					t.Fatal(err)
				}
				if landed {
					got++
				}
			}
			if got != test.wantFirst || h.Waiting() != test.sent-got {
				t.Errorf("%d of %d landed in the first block and %d wait, want %d to land and the rest to wait", got, test.sent, h.Waiting(), test.wantFirst)
			}
			for _, want := range test.wantNext {
				before := h.Waiting()
				h.Advance(1)
				if landed := before - h.Waiting(); landed != want {
					t.Errorf("%d landed in the next block, want %d", landed, want)
				}
			}
			if h.Waiting() != 0 {
				t.Errorf("%d transactions still wait, want none", h.Waiting())
			}
		})
	}
}

func TestWaitingTransactionsLandByPriceAndAge(t *testing.T) {
	t.Parallel()
	h := newFillableLedger(t, bank.BlockLimits{Account: 1_500_000})
	filler := h.call("a", callUnits, callLimit, 0)
	if landed, err := h.Submit(filler); !landed || err != nil {
		t.Fatalf("landed %v with error %v, want success", landed, err)
	}
	wanted := make([]*bank.Transaction, 4)
	for i, price := range []uint64{10, 30, 10, 20} {
		tx := h.call("a", callUnits, callLimit, price)
		if landed, err := h.Submit(tx); landed || err != nil {
			t.Fatalf("landed %v with error %v, want it to wait", landed, err)
		}
		wanted[[]int{2, 0, 3, 1}[i]] = tx
	}
	small := h.call("b", 1000, 10_000, 0)
	if landed, err := h.Submit(small); !landed || err != nil {
		t.Errorf("a transaction that fits: landed %v with error %v, want it to land before the waiting ones", landed, err)
	}
	for range 2 {
		if landed, err := h.Submit(wanted[3]); landed || err != nil {
			t.Errorf("a waiting transaction sent again: landed %v with error %v, want it to keep waiting", landed, err)
		}
	}
	if n := h.Waiting(); n != 4 {
		t.Errorf("%d transactions wait, want 4", n)
	}
	if err := h.Simulate(wanted[3], bank.Processed, false).Meta.Err; err != nil {
		t.Errorf("the simulation of a waiting transaction returns %v, want success", err)
	}
	first := h.slotOf(filler)
	h.Advance(10)
	var got, want []uint64
	for i, tx := range wanted {
		got, want = append(got, h.slotOf(tx)), append(want, first+1+uint64(i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slots of the waiting transactions (-want +got):\n%s", diff)
	}
	if h.Waiting() != 0 {
		t.Errorf("%d transactions still wait, want none", h.Waiting())
	}
}

func TestExpiredWaitingTransactionsAreDropped(t *testing.T) {
	t.Parallel()
	h := newFillableLedger(t, bank.BlockLimits{Account: 1_500_000})
	for range bank.MaxAge + 20 {
		if _, err := h.Submit(h.call("a", callUnits, callLimit, 10)); err != nil {
			t.Fatal(err)
		}
	}
	expired := h.call("a", callUnits, callLimit, 0)
	if _, err := h.Submit(expired); err != nil {
		t.Fatal(err)
	}
	h.Advance(bank.MaxAge - 1)
	if h.Waiting() == 0 {
		t.Fatal("nothing waits while the blockhash is still valid")
	}
	// More expensive transactions with a new blockhash keep the blocks full.
	h.hash = h.blockhash(bank.Processed)
	for range 5 {
		if _, err := h.Submit(h.call("a", callUnits, callLimit, 20)); err != nil {
			t.Fatal(err)
		}
	}
	h.Advance(2)
	if n := h.Waiting(); n != 3 || h.slotOf(expired) != 0 {
		t.Errorf("%d transactions wait and the expired one landed in slot %d, want 3 new ones to wait and the expired one dropped", n, h.slotOf(expired))
	}
	if landed, err := h.Submit(expired); landed || wire(t, err) != `"BlockhashNotFound"` {
		t.Errorf("sent again: landed %v with %s, want BlockhashNotFound", landed, wire(t, err))
	}
}

func TestForkKeepsBlockLimitsOnTheNewBranch(t *testing.T) {
	t.Parallel()
	h := newFillableLedger(t, bank.BlockLimits{Account: 1_500_000})
	h.Advance(3)
	var txs []*bank.Transaction
	for range 3 {
		tx := h.call("a", callUnits, callLimit, 0)
		if landed, err := h.Submit(tx); !landed || err != nil {
			t.Fatalf("landed %v with error %v, want success", landed, err)
		}
		txs = append(txs, tx)
		h.Advance(1)
	}
	undone, err := h.Fork(4, bank.LandAgain)
	if err != nil || len(undone) != 3 {
		t.Fatalf("undone %v with %v, want three transactions", undone, err)
	}
	if h.slotOf(txs[0]) == 0 || h.Waiting() != 2 {
		t.Errorf("the first landed again in slot %d and %d wait, want it to land and two to wait", h.slotOf(txs[0]), h.Waiting())
	}
	h.Advance(2)
	for i, tx := range txs {
		if got, want := h.slotOf(tx), h.slotOf(txs[0])+uint64(i); got != want {
			t.Errorf("transaction %d is in slot %d, want %d", i, got, want)
		}
	}

	// The open block is full, and one transaction waits.
	late := h.call("a", callUnits, callLimit, 0)
	if landed, err := h.Submit(late); landed || err != nil {
		t.Fatalf("landed %v with error %v, want it to wait", landed, err)
	}
	if _, err := h.Fork(1, bank.LandAgain); err != nil {
		t.Fatal(err)
	}
	if h.slotOf(txs[2]) == 0 || h.slotOf(late) != 0 {
		t.Error("want the undone transaction in the new branch's block again, and the late one still waiting")
	}
	if _, err := h.Fork(1, nil); err != nil {
		t.Fatal(err)
	}
	if h.slotOf(txs[2]) != 0 || h.slotOf(late) == 0 {
		t.Error("want the late transaction in the block instead of the lost one")
	}
}

func TestNewRejectsInvalidLimits(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]bank.BlockLimits{
		"a block limit below one transaction":    {Block: 1_000_000},
		"an account limit below one transaction": {Account: 1_000_000},
	} {
		opts := options()
		opts.Limits = limits
		if _, err := bank.New(opts); err == nil {
			t.Errorf("%s: got a bank, want an error", name)
		}
	}
}
