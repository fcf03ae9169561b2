package bank_test

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// hogUnits is the compute units of one call of the hog, and hogLimit its compute
// limit. A block takes nine calls of one payer: they all write the payer's account,
// whose limit is 12 million units.
const (
	hogUnits = 1_300_000
	hogLimit = 1_301_000
)

// hog is a program that uses compute units: its data says how many thousands.
func hog() bank.Program {
	return bank.Program{
		ID:      address("hog"),
		Account: bank.Account{Lamports: 1, Owner: solana.BPFLoaderUpgradeableProgramID, Executable: true},
		Process: func(v *bank.Invocation) error {
			return v.Consume(1000 * (uint64(v.Data[0]) + uint64(v.Data[1])<<8))
		},
	}
}

// hogging is a ledger whose blocks a test can fill.
type hogging struct {
	*ledger
	hash  solana.Hash
	calls uint64
}

func newHogging(t testing.TB, limits bank.BlockLimits) *hogging {
	t.Helper()
	opts := options(hog())
	opts.Limits = limits
	b, err := bank.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	h := &hogging{ledger: &ledger{Bank: b, t: t, wallet: key("wallet")}}
	for _, name := range []string{"wallet", "a", "b", "c", "d", "e"} {
		h.mustLand(key("faucet"), transferFrom("faucet", name, walletStart))
	}
	h.Advance(1)
	h.hash = h.blockhash(bank.Processed)
	return h
}

// call makes a payer's transaction that uses a number of units, with a compute limit
// and a price.
func (h *hogging) call(payer string, units, limit, price uint64) *bank.Transaction {
	h.t.Helper()
	h.calls++
	k := units / 1000
	// The data after the units differs, so that no two calls are the same.
	return h.sign(h.hash, []solana.PrivateKey{key(payer)}, unitLimit(uint32(limit)), unitPrice(price),
		solana.NewInstruction(address("hog"), nil, []byte{byte(k), byte(k >> 8), byte(h.calls), byte(h.calls >> 8)}))
}

// slotOf returns the slot of a landed transaction, 0 when it has not landed.
func (h *hogging) slotOf(tx *bank.Transaction) (slot uint64) {
	h.Read(bank.Processed, func(v bank.View) {
		if l := v.Transaction(tx.Signature()); l != nil {
			slot = l.Block.Slot
		}
	})
	return slot
}

func TestABlockIsLimitedInUnits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limits        bank.BlockLimits
		payers        []string
		units, limit  uint64
		sent          int
		wantFirst     int
		wantAfterward []int
	}{
		"one payer stops at 12 million": {
			payers: []string{"a"}, units: hogUnits, limit: hogLimit, sent: 20, wantFirst: 9, wantAfterward: []int{9, 2},
		},
		"only the used units count after a transaction has run": {
			payers: []string{"a"}, units: 100_000, limit: 1_400_000, sent: 120, wantFirst: 105, wantAfterward: []int{15},
		},
		"several payers share the block's 48 million": {
			payers: []string{"a", "b", "c", "d", "e"}, units: hogUnits, limit: hogLimit, sent: 45, wantFirst: 36, wantAfterward: []int{9},
		},
		"limits of the options apply": {
			limits: bank.BlockLimits{Account: 4_000_000, Block: 6_000_000},
			payers: []string{"a", "b"}, units: hogUnits, limit: hogLimit, sent: 6, wantFirst: 4, wantAfterward: []int{2},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHogging(t, test.limits)
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
				t.Errorf("%d landed in the first block and %d wait, want %d and the rest", got, h.Waiting(), test.wantFirst)
			}
			for _, want := range test.wantAfterward {
				before := h.Waiting()
				h.Advance(1)
				if landed := before - h.Waiting(); landed != want {
					t.Errorf("the next block took %d, want %d", landed, want)
				}
			}
			if h.Waiting() != 0 {
				t.Errorf("%d still wait", h.Waiting())
			}
		})
	}
}

func TestWaitingTransactionsLandByPriceAndAge(t *testing.T) {
	t.Parallel()
	h := newHogging(t, bank.BlockLimits{Account: 1_500_000})
	filler := h.call("a", hogUnits, hogLimit, 0)
	if landed, err := h.Submit(filler); !landed || err != nil {
		t.Fatalf("landed %v with %v", landed, err)
	}
	wanted := make([]*bank.Transaction, 4)
	for i, price := range []uint64{10, 30, 10, 20} {
		tx := h.call("a", hogUnits, hogLimit, price)
		if landed, err := h.Submit(tx); landed || err != nil {
			t.Fatalf("landed %v with %v, want it to wait", landed, err)
		}
		wanted[[]int{2, 0, 3, 1}[i]] = tx
	}
	small := h.call("b", 1000, 10_000, 0)
	if landed, err := h.Submit(small); !landed || err != nil {
		t.Errorf("one that fits: landed %v with %v, want it to pass those that wait", landed, err)
	}
	for range 2 {
		if landed, err := h.Submit(wanted[3]); landed || err != nil {
			t.Errorf("a waiting one sent again: landed %v with %v, want it to wait on", landed, err)
		}
	}
	if n := h.Waiting(); n != 4 {
		t.Errorf("%d wait, want each of the 4 once", n)
	}
	if err := h.Simulate(wanted[3], bank.Processed, false).Meta.Err; err != nil {
		t.Errorf("a waiting one is simulated with %v, want success", err)
	}
	first := h.slotOf(filler)
	h.Advance(10)
	var got, want []uint64
	for i, tx := range wanted {
		got, want = append(got, h.slotOf(tx)), append(want, first+1+uint64(i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slots of the waiting ones (-want +got):\n%s", diff)
	}
	if h.Waiting() != 0 {
		t.Errorf("%d still wait", h.Waiting())
	}
}

func TestExpiredWaitingTransactionsAreDropped(t *testing.T) {
	t.Parallel()
	h := newHogging(t, bank.BlockLimits{Account: 1_500_000})
	for range bank.MaxAge + 20 {
		if _, err := h.Submit(h.call("a", hogUnits, hogLimit, 10)); err != nil {
			t.Fatal(err)
		}
	}
	unlucky := h.call("a", hogUnits, hogLimit, 0)
	if _, err := h.Submit(unlucky); err != nil {
		t.Fatal(err)
	}
	h.Advance(bank.MaxAge - 1)
	if h.Waiting() == 0 {
		t.Fatal("nothing waits while the blockhash is still valid")
	}
	// More expensive transactions with a new blockhash keep the blocks full.
	h.hash = h.blockhash(bank.Processed)
	for range 5 {
		if _, err := h.Submit(h.call("a", hogUnits, hogLimit, 20)); err != nil {
			t.Fatal(err)
		}
	}
	h.Advance(2)
	if n := h.Waiting(); n != 3 || h.slotOf(unlucky) != 0 {
		t.Errorf("%d wait and the last one landed in slot %d, want 3 of the new ones alone to wait", n, h.slotOf(unlucky))
	}
	if landed, err := h.Submit(unlucky); landed || wire(t, err) != `"BlockhashNotFound"` {
		t.Errorf("sent again: landed %v with %s, want BlockhashNotFound", landed, wire(t, err))
	}
}

func TestTheWaitingListIsBounded(t *testing.T) {
	t.Parallel()
	h := newHogging(t, bank.BlockLimits{Account: 1_500_000, Waiting: 2})
	send := func(price uint64) (*bank.Transaction, string) {
		tx := h.call("a", hogUnits, hogLimit, price)
		_, err := h.Submit(tx)
		return tx, wire(t, err)
	}
	send(0) // fills the block
	cheap, _ := send(5)
	dear, _ := send(10)
	if _, got := send(5); got != `"WouldExceedMaxAccountCostLimit"` {
		t.Errorf("one that pays no more than the last: %s, want WouldExceedMaxAccountCostLimit", got)
	}
	dearest, got := send(20)
	if got != `null` {
		t.Errorf("one that pays more than the last: %s, want it to wait", got)
	}
	h.Advance(3)
	if h.slotOf(cheap) != 0 || h.slotOf(dear) == 0 || h.slotOf(dearest) == 0 {
		t.Error("want the two dearest to land and the cheapest to have vanished")
	}
}

func TestAForkFillsTheNewBranchUpToItsLimits(t *testing.T) {
	t.Parallel()
	h := newHogging(t, bank.BlockLimits{Account: 1_500_000})
	h.Advance(3)
	var txs []*bank.Transaction
	for range 3 {
		tx := h.call("a", hogUnits, hogLimit, 0)
		if landed, err := h.Submit(tx); !landed || err != nil {
			t.Fatalf("landed %v with %v", landed, err)
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
	late := h.call("a", hogUnits, hogLimit, 0)
	if landed, err := h.Submit(late); landed || err != nil {
		t.Fatalf("landed %v with %v, want it to wait", landed, err)
	}
	if _, err := h.Fork(1, bank.LandAgain); err != nil {
		t.Fatal(err)
	}
	if h.slotOf(txs[2]) == 0 || h.slotOf(late) != 0 {
		t.Error("want the undone one to fill the new branch's block again")
	}
	if _, err := h.Fork(1, nil); err != nil {
		t.Fatal(err)
	}
	if h.slotOf(txs[2]) != 0 || h.slotOf(late) == 0 {
		t.Error("want the waiting one in the place of the one that is lost")
	}
}

func TestNewRefusesLimitsThatNothingFits(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]bank.BlockLimits{
		"a block for less than one transaction":    {Block: 1_000_000},
		"an account for less than one transaction": {Account: 1_000_000},
		"fewer than none waiting":                  {Waiting: -1},
	} {
		opts := options()
		opts.Limits = limits
		if _, err := bank.New(opts); err == nil {
			t.Errorf("%s: got a bank, want an error", name)
		}
	}
}
