package bank_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// visibleState is the state that a reader at processed can read: balances and history by account name,
// signatures that landed, and blockhashes that are valid. It omits slots and heights, which a fork
// changes.
type visibleState struct {
	Balances     map[string]uint64
	History      map[string][]solana.Signature
	Landed       []solana.Signature
	Usable       []bool
	Transactions uint64
}

func (l *ledger) readState(names []string, signatures []solana.Signature, hashes []solana.Hash) visibleState {
	out := visibleState{Balances: make(map[string]uint64), History: make(map[string][]solana.Signature)}
	l.Read(bank.Processed, func(v bank.View) {
		for _, name := range names {
			if a := v.Account(address(name)); a != nil {
				out.Balances[name] = a.Lamports
			}
			for _, s := range v.ByAddress(bank.AddressQuery{Address: address(name), Limit: 1000}) {
				out.History[name] = append(out.History[name], s.Signature())
			}
		}
		for _, signature := range signatures {
			if v.Transaction(signature) != nil && v.Status(signature) != nil {
				out.Landed = append(out.Landed, signature)
			}
		}
		for _, hash := range hashes {
			out.Usable = append(out.Usable, v.ValidBlockhash(hash))
		}
		out.Transactions = v.Transactions()
	})
	return out
}

// TestForkRestoresEarlierState makes random histories, forks them and compares the remaining
// state with the state at the fork.
func TestForkRestoresEarlierState(t *testing.T) {
	t.Parallel()
	names := []string{"faucet", "wallet", "a", "b", "c"}
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLedger(t)
		var signatures []solana.Signature
		hashes := []solana.Hash{l.blockhash(bank.Processed)}
		// grow adds n blocks with transactions: some fail, some close an account and
		// some open it again.
		grow := func(n int) {
			for range n {
				for range random.IntN(4) {
					from, to := names[random.IntN(len(names))], names[random.IntN(len(names))]
					amount := 1_000_000 + random.Uint64N(1000)
					if balance := l.balance(bank.Processed, address(from)); from != "faucet" && random.IntN(3) == 0 && balance > fee {
						amount = balance - fee
					}
					tx := l.sign(l.blockhash(bank.Processed), []solana.PrivateKey{key(from)}, transferFrom(from, to, amount))
					_, _ = l.Submit(tx) // any outcome is fine
					signatures = append(signatures, tx.Signature())
				}
				if random.IntN(5) == 0 {
					l.Skip(random.Uint64N(3))
				} else {
					l.Advance(1)
				}
				hashes = append(hashes, l.blockhash(bank.Processed))
			}
		}
		grow(3 * finalizeAfter)
		for range 5 {
			l.Advance(1) // so that the open block is empty: forks undo it too
			hashes = append(hashes, l.blockhash(bank.Processed))
			before := l.readState(names, signatures, nil)
			kept := len(hashes)
			n := 1 + random.IntN(finalizeAfter-1)
			grow(n)
			if _, err := l.Fork(uint64(n)+1, nil); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if diff := cmp.Diff(before, l.readState(names, signatures, nil)); diff != "" {
				t.Fatalf("seed %d: %d blocks undone (-want +got):\n%s", seed, n, diff)
			}
			for i, usable := range l.readState(nil, nil, hashes).Usable {
				if want := i < kept; i >= kept-finalizeAfter && usable != want {
					t.Fatalf("seed %d: blockhash %d is usable: %v, want %v", seed, i, usable, want)
				}
			}
			hashes = hashes[:kept]
			grow(2)
		}
	}
}

func TestForkUsesNewSlotsAtTheSameHeights(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(finalizeAfter + 9)
	positions := func() (slots, heights []uint64) {
		for _, c := range []bank.Commitment{bank.Processed, bank.Confirmed, bank.Finalized} {
			l.Read(c, func(v bank.View) { slots, heights = append(slots, v.Slot()), append(heights, v.Height()) })
		}
		return slots, heights
	}
	old := make(map[uint64]solana.Hash)
	var blocks []uint64
	l.Read(bank.Confirmed, func(v bank.View) {
		blocks = v.Blocks(0, 1000)
		for _, slot := range blocks {
			block, err := v.Block(slot)
			if err != nil {
				t.Fatal(err)
			}
			old[slot] = block.Hash
		}
	})
	slots, heights := positions()
	if _, err := l.Fork(5, nil); err != nil {
		t.Fatal(err)
	}
	slotsAfter, heightsAfter := positions()
	if diff := cmp.Diff(heights, heightsAfter); diff != "" {
		t.Errorf("block heights (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint64{slots[0] + 5, slots[0] + 3, slots[2]}, slotsAfter); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
	l.Advance(finalizeAfter)
	l.Read(bank.Finalized, func(v bank.View) {
		parent := uint64(0)
		for _, slot := range v.Blocks(0, 1000) {
			block, err := v.Block(slot)
			if err != nil {
				t.Fatal(err)
			}
			if hash, ok := old[slot]; ok && hash != block.Hash {
				t.Errorf("slot %d has another block than before the fork", slot)
			}
			if slot > 0 && block.ParentSlot != parent {
				t.Errorf("block %d has parent slot %d, want %d", slot, block.ParentSlot, parent)
			}
			parent = slot
		}
		for slot := slots[0] - 4; slot <= slots[0]; slot++ {
			if _, err := v.Block(slot); err == nil {
				t.Errorf("slot %d still has its undone block", slot)
			}
		}
	})
}

func TestUndoneTransactionsAreLostOrLandAgain(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	hash := l.blockhash(bank.Processed)
	send := func(to string) *bank.Transaction {
		tx := l.sign(hash, []solana.PrivateKey{l.wallet}, transferFrom("wallet", to, 2_000_000))
		if landed, err := l.Submit(tx); !landed || err != nil {
			t.Fatalf("landed %v with error %v, want success", landed, err)
		}
		return tx
	}
	l.Advance(1)
	lost := send("lost")
	l.Advance(1)
	again := send("again")
	l.Advance(1)
	orphan := l.mustLand(l.wallet, transferFrom("wallet", "orphan", 2_000_000))
	l.Advance(confirmAfter)

	undone, err := l.Fork(5+1, func(landed *bank.Landed) bool { return landed.Signature() != lost.Signature() })
	if err != nil {
		t.Fatal(err)
	}
	want := []bank.Undone{
		{Signature: lost.Signature(), Slot: 2}, {Signature: again.Signature(), Slot: 3, Again: true},
		{Signature: orphan.Signature(), Slot: 4, Again: true},
	}
	if diff := cmp.Diff(want, undone[1:]); diff != "" {
		t.Errorf("undone after the wallet's funding (-want +got):\n%s", diff)
	}
	for to, want := range map[string]uint64{"lost": 0, "again": 2_000_000, "orphan": 0} {
		if got := l.balance(bank.Processed, address(to)); got != want {
			t.Errorf("%s has %d lamports, want %d", to, got, want)
		}
	}
	l.Read(bank.Processed, func(v bank.View) {
		if s := v.Status(again.Signature()); s == nil || s.Block.Slot != v.Slot() || s.Commitment != bank.Processed {
			t.Errorf("the transaction that landed again has status %v, want processed in the open slot", s)
		}
		if v.Status(orphan.Signature()) != nil {
			t.Error("a transaction landed again although its blockhash was undone")
		}
	})
	if landed, err := l.Submit(lost); !landed || err != nil {
		t.Errorf("lost transaction sent again: landed %v with error %v, want success", landed, err)
	}
	if landed, err := l.Submit(again); landed || wire(t, err) != `"AlreadyProcessed"` {
		t.Errorf("transaction that landed again, sent again: landed %v with %s, want AlreadyProcessed", landed, wire(t, err))
	}
}

func TestAForkNeverUndoesAFinalizedBlock(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(3 * finalizeAfter)
	open := func() (slot uint64) {
		l.Read(bank.Processed, func(v bank.View) { slot = v.Slot() })
		return slot
	}
	before := open()
	for _, n := range []uint64{0, finalizeAfter + 1, 1 << 40} {
		_, err := l.Fork(n, bank.LandAgain)
		if err == nil || !strings.Contains(err.Error(), "1 to 32") {
			t.Errorf("%d blocks: error %v, want an error with the allowed range", n, err)
		}
	}
	if got := open(); got != before {
		t.Errorf("a refused fork moved the chain from slot %d to %d", before, got)
	}
	if _, err := l.Fork(finalizeAfter, bank.LandAgain); err != nil {
		t.Errorf("fork of every block above the finalized one: %v", err)
	}
}

// TestForksRunConcurrentlyWithOtherCalls makes forks, sends, reads and simulations at the same time, for the
// race detector. In any order of the calls, lamports leave the accounts only as fees.
func TestForksRunConcurrentlyWithOtherCalls(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(finalizeAfter)
	hash := l.blockhash(bank.Processed)
	l.Advance(5) // so that the forks below do not undo the blockhash
	var wg sync.WaitGroup
	for worker := range 4 {
		txs := make([]*bank.Transaction, 50)
		for i := range txs {
			txs[i] = l.sign(hash, []solana.PrivateKey{l.wallet}, transferFrom("wallet", "to", 1_000_000+uint64(100*worker+i)))
		}
		wg.Go(func() {
			for i, tx := range txs {
				l.Simulate(tx, bank.Processed, false)
				_, _ = l.Submit(tx) // forks may undo it and send it again at the same time
				l.Behind(3).Read(bank.Confirmed, func(v bank.View) {
					v.ByAddress(bank.AddressQuery{Address: address("to"), Limit: 5})
					v.PrioritizationFees(nil)
				})
				switch i % 10 {
				case 3:
					l.Advance(1)
				case 9:
					if _, err := l.Fork(3, bank.LandAgain); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	var fees, total uint64
	l.Read(bank.Processed, func(v bank.View) {
		for _, slot := range v.Blocks(0, 1000) {
			block, err := v.Block(slot)
			if err != nil {
				t.Fatal(err)
			}
			for _, landed := range block.Landed {
				fees += landed.Meta.Fee
			}
		}
		if v.Transactions() != 201 {
			t.Errorf("%d transactions are on the chain, want 201: every undone one landed again", v.Transactions())
		}
	})
	for _, name := range []string{"faucet", "wallet", "to"} {
		total += l.balance(bank.Processed, address(name))
	}
	if total+fees != faucetStart {
		t.Errorf("balances of %d lamports and fees of %d, want %d together", total, fees, faucetStart)
	}
}

// TestForkFrom undoes a slot's transaction, whatever the number of blocks after it.
func TestForkFrom(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]uint64{"in the open block": 0, "in the newest closed block": 1, "five blocks ago": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.Advance(1)
			kept := l.mustLand(l.wallet, transferFrom("wallet", "kept", 2_000_000))
			l.Advance(1)
			lost := l.mustLand(l.wallet, transferFrom("wallet", "lost", 2_000_000))
			var slot uint64
			l.Read(bank.Processed, func(v bank.View) { slot = v.Slot() })
			l.Advance(after)
			undone, err := l.ForkFrom(slot, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]bank.Undone{{Signature: lost.Signature(), Slot: slot}}, undone); diff != "" {
				t.Errorf("undone (-want +got):\n%s", diff)
			}
			l.Read(bank.Processed, func(v bank.View) {
				if v.Status(kept.Signature()) == nil {
					t.Error("the transaction of an earlier slot is undone, too")
				}
			})
		})
	}
}
