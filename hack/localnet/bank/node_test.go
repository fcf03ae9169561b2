package bank_test

import (
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

func TestLaggingNodeSeesOlderStateAtEveryLevel(t *testing.T) {
	t.Parallel()
	const behind = 10
	l := newLedger(t)
	l.Advance(3 * finalizeAfter)
	// answer is the state of a node at one level.
	type answer struct {
		slot, height, balance, transactions, last uint64
		hash                                      solana.Hash
	}
	levels := []bank.Commitment{bank.Finalized, bank.Confirmed, bank.Processed}
	ask := func(n bank.Node, c bank.Commitment) (a answer) {
		n.Read(c, func(v bank.View) {
			a.slot, a.height, a.transactions = v.Slot(), v.Height(), v.Transactions()
			a.hash, a.last = v.LatestBlockhash()
			if to := v.Account(address("to")); to != nil {
				a.balance = to.Lamports
			}
		})
		return a
	}
	// earlier has one entry for each slot: the answers of a node that does not lag, by level.
	var earlier []map[bank.Commitment]answer
	for i := range uint64(3 * finalizeAfter) {
		l.mustLand(l.wallet, transferFrom("wallet", "to", 1_000_000+i))
		now := make(map[bank.Commitment]answer)
		for _, c := range levels {
			now[c] = ask(l.Behind(0), c)
		}
		earlier = append(earlier, now)
		l.Advance(1)
	}
	for _, c := range levels {
		got, want := ask(l.Behind(behind), c), earlier[len(earlier)-behind][c]
		if c == bank.Processed {
			// The lagging node's newest block is closed, so that its blockhash is the latest. When
			// the other nodes were at this block, it was open, and its parent's hash was the latest.
			want.hash, want.last = earlier[len(earlier)-behind+1][c].hash, want.last+1
		}
		if got != want {
			t.Errorf("at %s, %d slots behind: got %+v, want the earlier state %+v", c, behind, got, want)
		}
	}
}

func TestLaggingNodeDoesNotSeeNewerBlocks(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(finalizeAfter)
	l.Skip(3)
	hash := l.blockhash(bank.Processed)
	tx := l.sign(hash, []solana.PrivateKey{l.wallet}, transferFrom("wallet", "to", 2_000_000))
	lagging := l.Behind(5)
	simulate := func(replace bool) string { return wire(t, lagging.Simulate(tx, bank.Processed, replace).Meta.Err) }
	if got := simulate(false); got != `"BlockhashNotFound"` {
		t.Errorf("simulated with a blockhash newer than the node: %s, want BlockhashNotFound", got)
	}
	if got := simulate(true); got != `null` {
		t.Errorf("simulated with the node's latest blockhash: %s, want success", got)
	}
	if landed, err := l.Submit(tx); !landed || err != nil {
		t.Fatalf("landed %v with error %v, want success", landed, err)
	}
	slot := uint64(0)
	l.Read(bank.Processed, func(v bank.View) { slot = v.Slot() })
	for step := range uint64(6) {
		lagging.Read(bank.Processed, func(v bank.View) {
			if got, want := v.Slot(), slot+step-5; got != want && got != slot-4 {
				t.Errorf("step %d: the node is at slot %d, want %d, or %d before the skipped slots", step, got, want, slot-4)
			}
			for _, fee := range v.PrioritizationFees(nil) {
				if fee.Slot >= v.Slot() {
					t.Errorf("step %d: the node returns fees of slot %d, which is not complete for it", step, fee.Slot)
				}
			}
			status := v.Status(tx.Signature())
			if seen, want := status != nil, step == 5; seen != want {
				t.Errorf("step %d: the node has the transaction: %v, want %v", step, seen, want)
			}
			if status != nil && (status.Commitment != bank.Processed || status.Confirmations != 0) {
				t.Errorf("the transaction is %s with %d confirmations, want processed with 0", status.Commitment, status.Confirmations)
			}
			if _, err := v.Block(slot + step); !errors.Is(err, bank.ErrBlockNotAvailable) {
				t.Errorf("the newest block: %v, want ErrBlockNotAvailable", err)
			}
		})
		l.Advance(1)
	}
}

func TestLagIsBounded(t *testing.T) {
	t.Parallel()
	opts := options()
	opts.History = bank.MaxAge + finalizeAfter + 22 // leaves room for a lag of 21 slots
	b, err := bank.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	slot := func(n bank.Node, c bank.Commitment) (slot uint64) {
		n.Read(c, func(v bank.View) { slot = v.Slot() })
		return slot
	}
	if got := slot(b.Behind(20), bank.Processed); got != 0 {
		t.Errorf("a node that lags by more than the chain's length is at slot %d, want 0", got)
	}
	b.Advance(199)
	if got := slot(b.Behind(1000), bank.Processed); got != 179 {
		t.Errorf("a node that lags by more than the room is at slot %d, want 179", got)
	}
	if got := slot(b.Behind(20), bank.Finalized); got != 180-finalizeAfter {
		t.Errorf("its finalized slot is %d, want %d", got, 180-finalizeAfter)
	}
	b.Advance(300)
	b.Behind(20).Read(bank.Finalized, func(v bank.View) {
		for age, want := range map[uint64]bool{bank.MaxAge: true, bank.MaxAge + 1: false} {
			block, err := v.Block(v.Slot() - age)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.ValidBlockhash(block.Hash); got != want {
				t.Errorf("on the most lagging node, a blockhash of %d blocks ago is usable: %v, want %v", age, got, want)
			}
		}
	})
}

func TestANodeStaysOnTheNewBranchAfterAFork(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(finalizeAfter)
	tx := l.mustLand(l.wallet, transferFrom("wallet", "to", 2_000_000))
	l.Advance(5)
	for behind := range uint64(10) {
		before := uint64(0)
		l.Behind(behind).Read(bank.Processed, func(v bank.View) { before = v.Slot() })
		if _, err := l.Fork(6, nil); err != nil {
			t.Fatal(err)
		}
		l.Behind(behind).Read(bank.Processed, func(v bank.View) {
			if v.Transaction(tx.Signature()) != nil || v.Account(address("to")) != nil {
				t.Errorf("a node %d slots behind still has the undone transaction", behind)
			}
			if v.Slot() < before {
				t.Errorf("a node %d slots behind went back from slot %d to %d", behind, before, v.Slot())
			}
		})
	}
}
