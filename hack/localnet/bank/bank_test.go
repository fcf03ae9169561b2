package bank_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

func TestNewRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*bank.Options){
		"no genesis hash":                        func(o *bank.Options) { o.Genesis = solana.Hash{} },
		"confirmed at once":                      func(o *bank.Options) { o.ConfirmAfter = 0 },
		"finalized before confirmed":             func(o *bank.Options) { o.FinalizeAfter = o.ConfirmAfter - 1 },
		"history shorter than a blockhash's age": func(o *bank.Options) { o.History = bank.MaxAge + finalizeAfter },
		"no clock":                               func(o *bank.Options) { o.Clock = nil },
		"an empty faucet":                        func(o *bank.Options) { o.FaucetLamports = 0 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options()
			change(&opts)
			if _, err := bank.New(opts); err == nil {
				t.Error("got a bank, want an error")
			}
		})
	}
}

func TestReadsSeeStateOfTheirCommitmentLevel(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	balances := func() []uint64 {
		return []uint64{
			l.balance(bank.Processed, address("to")), l.balance(bank.Confirmed, address("to")),
			l.balance(bank.Finalized, address("to")),
		}
	}
	const first, second = 2_000_000, 3_000_000
	l.mustLand(l.wallet, transferFrom("wallet", "to", first))
	if diff := cmp.Diff([]uint64{first, 0, 0}, balances()); diff != "" {
		t.Errorf("in the open slot (-want +got):\n%s", diff)
	}
	l.Advance(1)
	l.mustLand(l.wallet, transferFrom("wallet", "to", second))
	l.Advance(1)
	if diff := cmp.Diff([]uint64{first + second, first, 0}, balances()); diff != "" {
		t.Errorf("when the first transfer is confirmed (-want +got):\n%s", diff)
	}
	l.Advance(finalizeAfter - 2)
	if diff := cmp.Diff([]uint64{first + second, first + second, first}, balances()); diff != "" {
		t.Errorf("when the first transfer is finalized (-want +got):\n%s", diff)
	}
	l.Advance(500)
	if diff := cmp.Diff([]uint64{first + second, first + second, first + second}, balances()); diff != "" {
		t.Errorf("500 blocks later (-want +got):\n%s", diff)
	}
}

func TestClosedAccountExistsAtFinalizedUntilItsSlotIsFinalized(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(finalizeAfter)
	l.mustLand(l.wallet, transferFrom("wallet", "to", walletStart-fee))
	account := func(c bank.Commitment) (a *bank.Account) {
		l.Read(c, func(v bank.View) { a = v.Account(address("wallet")) })
		return a
	}
	if account(bank.Processed) != nil {
		t.Error("the emptied account still exists at processed")
	}
	if account(bank.Finalized) == nil {
		t.Error("the account is deleted at finalized before its slot is finalized")
	}
	l.Advance(finalizeAfter)
	if account(bank.Finalized) != nil {
		t.Error("the emptied account still exists at finalized")
	}
	l.mustLand(key("faucet"), transferFrom("faucet", "wallet", walletStart))
	if account(bank.Processed) == nil {
		t.Error("the account cannot be opened again")
	}
}

func TestBlockhashIsValidUpToItsLastValidHeight(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(10)
	var hash solana.Hash
	var last, height uint64
	l.Read(bank.Confirmed, func(v bank.View) {
		hash, last = v.LatestBlockhash()
		height = v.Height()
	})
	if last != height+bank.MaxAge {
		t.Errorf("last valid height is %d at height %d, want %d more", last, height, bank.MaxAge)
	}
	early := l.sign(hash, []solana.PrivateKey{l.wallet}, transferFrom("wallet", "to", 2_000_000))
	late := l.sign(hash, []solana.PrivateKey{l.wallet}, transferFrom("wallet", "to", 3_000_000))

	openHeight := func() (h uint64) {
		l.Read(bank.Processed, func(v bank.View) { h = v.Height() })
		return h
	}
	l.Advance(last - openHeight())
	if landed, err := l.Submit(early); !landed {
		t.Errorf("at the last valid height: refused with %v, want it to land", err)
	}
	l.Advance(1)
	if landed, err := l.Submit(late); landed || wire(t, err) != `"BlockhashNotFound"` {
		t.Errorf("one block later: landed %v with %s, want BlockhashNotFound", landed, wire(t, err))
	}
}

func TestSimulationUsesBlockhashesOfItsCommitmentLevel(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(finalizeAfter + 5)
	tx := l.sign(l.blockhash(bank.Confirmed), []solana.PrivateKey{l.wallet}, transferFrom("wallet", "to", 2_000_000))
	tests := map[string]struct {
		level   bank.Commitment
		replace bool
		want    string
	}{
		"processed knows a confirmed blockhash":         {bank.Processed, false, `null`},
		"confirmed knows its own blockhash":             {bank.Confirmed, false, `null`},
		"finalized does not know a newer blockhash":     {bank.Finalized, false, `"BlockhashNotFound"`},
		"a replacement blockhash is valid at finalized": {bank.Finalized, true, `null`},
		"a replacement blockhash is valid at processed": {bank.Processed, true, `null`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := wire(t, l.Simulate(tx, test.level, test.replace).Meta.Err); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if got := l.balance(bank.Processed, address("to")); got != 0 {
		t.Errorf("simulations moved %d lamports, want none", got)
	}
}

func TestATransactionLandsOnce(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	tx := l.mustLand(l.wallet, transferFrom("wallet", "to", 2_000_000))
	for _, advance := range []uint64{0, 1, finalizeAfter, bank.MaxAge - finalizeAfter - 2} {
		l.Advance(advance)
		if landed, err := l.Submit(tx); landed || wire(t, err) != `"AlreadyProcessed"` {
			t.Fatalf("sent again: landed %v with %s, want AlreadyProcessed", landed, wire(t, err))
		}
	}
	l.Advance(1)
	if landed, err := l.Submit(tx); landed || wire(t, err) != `"BlockhashNotFound"` {
		t.Fatalf("sent again after its blockhash expired: landed %v with %s, want BlockhashNotFound", landed, wire(t, err))
	}
	if got := l.balance(bank.Processed, address("to")); got != 2_000_000 {
		t.Errorf("the recipient has %d lamports, want 2000000 once", got)
	}
}

func TestConcurrentSendsOfOneTransactionLandOnce(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	tx := l.sign(l.blockhash(bank.Processed), []solana.PrivateKey{l.wallet}, transferFrom("wallet", "to", 2_000_000))
	var wg sync.WaitGroup
	var mu sync.Mutex
	landed := 0
	for range 16 {
		wg.Go(func() {
			ok, _ := l.Submit(tx)
			l.Advance(1)
			l.Simulate(tx, bank.Processed, true)
			l.Read(bank.Confirmed, func(v bank.View) { v.ByAddress(bank.AddressQuery{Address: address("to"), Limit: 5}) })
			mu.Lock()
			defer mu.Unlock()
			if ok {
				landed++
			}
		})
	}
	wg.Wait()
	if landed != 1 {
		t.Errorf("%d sends landed, want 1", landed)
	}
	if got := l.balance(bank.Processed, address("to")); got != 2_000_000 {
		t.Errorf("the recipient has %d lamports, want 2000000", got)
	}
}

func TestStatusFollowsTheCommitmentLevels(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	tx := l.mustLand(l.wallet, transferFrom("wallet", "to", 2_000_000))
	type status struct {
		Level         string
		Confirmations uint64
		Recent        bool
	}
	at := func() (out status) {
		l.Read(bank.Processed, func(v bank.View) {
			s := v.Status(tx.Signature())
			out = status{s.Commitment.String(), s.Confirmations, s.Recent}
		})
		return out
	}
	for _, step := range []struct {
		advance uint64
		want    status
	}{
		{0, status{"processed", 0, true}},
		{1, status{"processed", 1, true}},
		{1, status{"confirmed", 2, true}},
		{29, status{"confirmed", 31, true}},
		{1, status{"finalized", 32, true}},
		{bank.MaxAge - 32, status{"finalized", bank.MaxAge, true}},
		{1, status{"finalized", bank.MaxAge + 1, false}},
	} {
		l.Advance(step.advance)
		if diff := cmp.Diff(step.want, at()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestSkippedSlotsHaveNoBlockAndNoHeight(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.Advance(3)
	l.Skip(2)
	l.Advance(confirmAfter)
	l.Read(bank.Confirmed, func(v bank.View) {
		if v.Slot() != 7 || v.Height() != 5 {
			t.Errorf("slot %d at height %d, want 7 at 5", v.Slot(), v.Height())
		}
		if diff := cmp.Diff([]uint64{3, 4, 7}, v.Blocks(3, 100)); diff != "" {
			t.Errorf("blocks (-want +got):\n%s", diff)
		}
		if _, err := v.Block(5); !errors.Is(err, bank.ErrSlotSkipped) {
			t.Errorf("block 5: %v, want ErrSlotSkipped", err)
		}
		if _, err := v.Block(8); !errors.Is(err, bank.ErrBlockNotAvailable) {
			t.Errorf("block 8: %v, want ErrBlockNotAvailable", err)
		}
		block, err := v.Block(7)
		if err != nil || block.ParentSlot != 4 {
			t.Fatalf("block 7: %v with error %v, want parent slot 4", block, err)
		}
		if parent, _ := v.Block(4); parent.Hash != block.ParentHash {
			t.Error("block 7's parent hash is not block 4's hash")
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	old := l.mustLand(l.wallet, transferFrom("wallet", "to", 2_000_000))
	l.Advance(600)
	young := l.mustLand(l.wallet, transferFrom("wallet", "to", 2_000_000))
	l.Advance(600)
	l.Read(bank.Finalized, func(v bank.View) {
		if got := v.FirstAvailableBlock(); got != 202 {
			t.Errorf("first available block is %d, want 202", got)
		}
		if _, err := v.Block(201); !errors.Is(err, bank.ErrBlockCleanedUp) {
			t.Errorf("block 201: %v, want ErrBlockCleanedUp", err)
		}
		if v.Transaction(old.Signature()) != nil {
			t.Error("a transaction older than the history is still found")
		}
		if v.Transaction(young.Signature()) == nil {
			t.Error("a transaction inside the history is not found")
		}
		got := v.ByAddress(bank.AddressQuery{Address: address("to"), Limit: 10})
		if len(got) != 1 || got[0].Signature() != young.Signature() {
			t.Errorf("the address has %d transactions, want the younger one", len(got))
		}
	})
	if got := l.balance(bank.Finalized, address("to")); got != 4_000_000 {
		t.Errorf("the account has %d lamports, want 4000000: forgetting history must not touch state", got)
	}
}

func TestByAddressListsNewestFirstWithinItsRange(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	var sent []solana.Signature
	for i := range uint64(6) {
		sent = append(sent, l.mustLand(l.wallet, transferFrom("wallet", "to", 2_000_000+i)).Signature())
		if i%2 == 1 {
			l.Advance(1)
		}
	}
	l.Advance(confirmAfter)
	unconfirmed := l.mustLand(l.wallet, transferFrom("wallet", "to", 2_000_000)).Signature()
	tests := map[string]struct {
		query bank.AddressQuery
		want  []solana.Signature
	}{
		"all confirmed, newest first": {
			bank.AddressQuery{Limit: 10}, []solana.Signature{sent[5], sent[4], sent[3], sent[2], sent[1], sent[0]}},
		"as many as the limit":        {bank.AddressQuery{Limit: 2}, []solana.Signature{sent[5], sent[4]}},
		"older than a signature":      {bank.AddressQuery{Limit: 2, Before: sent[3]}, []solana.Signature{sent[2], sent[1]}},
		"newer than a signature":      {bank.AddressQuery{Limit: 9, Until: sent[3]}, []solana.Signature{sent[5], sent[4]}},
		"between two signatures":      {bank.AddressQuery{Limit: 9, Before: sent[4], Until: sent[1]}, []solana.Signature{sent[3], sent[2]}},
		"before an unknown signature": {bank.AddressQuery{Limit: 9, Before: solana.Signature{1}}, nil},
		"until an unknown signature":  {bank.AddressQuery{Limit: 1, Until: solana.Signature{1}}, []solana.Signature{sent[5]}},
		"before an unconfirmed one":   {bank.AddressQuery{Limit: 1, Before: unconfirmed}, []solana.Signature{sent[5]}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.query.Address = address("to")
			var got []solana.Signature
			l.Read(bank.Confirmed, func(v bank.View) {
				for _, status := range v.ByAddress(test.query) {
					got = append(got, status.Signature())
				}
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnotherRunOfTheChainHasOtherBlockhashes(t *testing.T) {
	t.Parallel()
	first := newLedger(t)
	opts := options()
	later := opts.Clock().Add(1)
	opts.Clock = func() time.Time { return later }
	b, err := bank.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	second := &ledger{Bank: b, t: t}
	if first.blockhash(bank.Processed) == second.blockhash(bank.Processed) {
		t.Error("two runs share a blockhash: a transaction of one could land in the other")
	}
}

func TestSizesAreBoundedInALongRun(t *testing.T) {
	t.Parallel()
	opts := options()
	opts.History = 200
	b, err := bank.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{Bank: b, t: t, wallet: key("wallet")}
	l.mustLand(key("faucet"), transferFrom("faucet", "wallet", walletStart))
	// Every round does the same, so that the sizes after any two rounds can be compared.
	amount := uint64(1_000_000)
	round := func() {
		for range 10 {
			amount++
			l.mustLand(key("faucet"), transferFrom("faucet", "to", amount))
			l.Advance(1)
		}
		amount++
		l.mustLand(key("faucet"), transferFrom("faucet", "to", amount))
		if _, err := l.Fork(5, bank.LandAgain); err != nil {
			t.Fatal(err)
		}
		l.Skip(3)
	}
	for range 30 {
		round()
	}
	before := l.Sizes()
	for range 30 {
		round()
	}
	if diff := cmp.Diff(before, l.Sizes()); diff != "" {
		t.Errorf("sizes after 30 and after 60 rounds (-want +got):\n%s", diff)
	}
}
