package bank_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/lookuptable"
	"github.com/relaypool/relaypool/hack/localnet/lookuptable/layout"
)

// newTableLedger is a ledger with the lookup table program and accounts of a
// test's own.
func newTableLedger(t testing.TB, accounts map[string]bank.Account, programs ...bank.Program) *ledger {
	t.Helper()
	opts := options(append(programs, lookuptable.Program())...)
	opts.Accounts = make(map[solana.PublicKey]bank.Account)
	for name, account := range accounts {
		opts.Accounts[address(name)] = account
	}
	b, err := bank.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{Bank: b, t: t, wallet: key("wallet")}
	l.mustLand(key("faucet"), transferFrom("faucet", "wallet", walletStart))
	return l
}

func tableOf(names ...string) bank.Account {
	keys := make([]solana.PublicKey, len(names))
	for i, name := range names {
		keys[i] = address(name)
	}
	return lookuptable.Table(keys)
}

// signV0 makes a transaction of the wallet's whose accounts are the static keys
// and those of the lookups. program is the position of the program among the
// keys, accounts those of its one instruction.
func (l *ledger) signV0(static []solana.PublicKey, lookups []solana.MessageAddressTableLookup, program uint16, accounts []uint16, data []byte) *bank.Transaction {
	l.t.Helper()
	tx := &solana.Transaction{Message: solana.Message{
		Header:          solana.MessageHeader{NumRequiredSignatures: 1, NumReadonlyUnsignedAccounts: 1},
		AccountKeys:     append([]solana.PublicKey{l.wallet.PublicKey()}, static...),
		RecentBlockhash: l.blockhash(bank.Processed),
		Instructions:    []solana.CompiledInstruction{{ProgramIDIndex: program, Accounts: accounts, Data: data}},
	}}
	tx.Message.SetVersion(solana.MessageVersionV0)
	tx.Message.AddressTableLookups = lookups
	return l.encode(tx, []solana.PrivateKey{l.wallet})
}

// pay makes a transfer of 2 million lamports from the wallet to an account of
// a table.
func (l *ledger) pay(table string, index uint8) *bank.Transaction {
	l.t.Helper()
	return l.signV0([]solana.PublicKey{solana.SystemProgramID},
		[]solana.MessageAddressTableLookup{{AccountKey: address(table), WritableIndexes: []uint8{index}}},
		1, []uint16{0, 2}, []byte{2, 0, 0, 0, 0x80, 0x84, 0x1e, 0, 0, 0, 0, 0})
}

func TestATableThatDoesNotServeKeepsItsTransactionOut(t *testing.T) {
	t.Parallel()
	with := func(change func(*bank.Account)) bank.Account {
		account := tableOf("to", "other")
		account.Data = slices.Clone(account.Data)
		change(&account)
		return account
	}
	header := func(h layout.Header) bank.Account {
		return with(func(a *bank.Account) { copy(a.Data, h.Bytes()) })
	}
	accounts := map[string]bank.Account{
		"good":              tableOf("to", "other"),
		"of another owner":  with(func(a *bank.Account) { a.Owner = solana.SystemProgramID }),
		"empty":             with(func(a *bank.Account) { a.Data = nil }),
		"half a header":     with(func(a *bank.Account) { a.Data = a.Data[:40] }),
		"half an address":   with(func(a *bank.Account) { a.Data = a.Data[:len(a.Data)-1] }),
		"never initialised": with(func(a *bank.Account) { clear(a.Data[:4]) }),
		"of unknown kind":   with(func(a *bank.Account) { a.Data[0] = 2 }),
		"extended now":      header(layout.Header{DeactivationSlot: layout.Never, LastExtendedSlot: 5, LastExtendedStart: 1}),
		"just deactivated":  header(layout.Header{DeactivationSlot: 5}),
		"still recent":      header(layout.Header{DeactivationSlot: 3}),
		"a skipped slot":    header(layout.Header{DeactivationSlot: 2}),
	}
	l := newTableLedger(t, accounts)
	l.Skip(1) // slot 2
	l.Advance(2)
	tests := map[string]struct {
		table string
		index uint8
		want  string
	}{
		"a table that serves":                        {"good", 1, "null"},
		"no table":                                   {"nowhere", 0, `"AddressLookupTableNotFound"`},
		"an account that is no table":                {"of another owner", 0, `"InvalidAddressLookupTableOwner"`},
		"a table without data":                       {"empty", 0, `"InvalidAddressLookupTableData"`},
		"a table cut short":                          {"half a header", 0, `"InvalidAddressLookupTableData"`},
		"a table whose last address is cut":          {"half an address", 0, `"InvalidAddressLookupTableData"`},
		"a table that was never made":                {"never initialised", 0, `"InvalidAddressLookupTableData"`},
		"a table of an unknown kind":                 {"of unknown kind", 0, `"InvalidAddressLookupTableData"`},
		"an index beyond the table":                  {"good", 2, `"InvalidAddressLookupTableIndex"`},
		"an address added in the same slot":          {"extended now", 1, `"InvalidAddressLookupTableIndex"`},
		"an address from before":                     {"extended now", 0, "null"},
		"a table deactivated in the same slot":       {"just deactivated", 0, "null"},
		"a table deactivated a little ago":           {"still recent", 0, "null"},
		"a table whose deactivation slot is unknown": {"a skipped slot", 0, `"AddressLookupTableNotFound"`},
	}
	for name, test := range tests {
		tx := l.pay(test.table, test.index)
		l.Simulate(tx, bank.Processed, false, func(s *bank.Simulation) {
			if got := wire(t, s.Meta.Err); got != test.want {
				t.Errorf("%s: the simulation gives %s, want %s", name, got, test.want)
			}
		})
		landed, err := l.Submit(tx)
		if got := wire(t, err); got != test.want || landed != (test.want == "null") {
			t.Errorf("%s: landed %v with %s, want %s", name, landed, got, test.want)
		}
	}
	// In the next slot what was just added is there.
	l.Advance(1)
	if landed, err := l.Submit(l.pay("extended now", 1)); !landed || err != nil {
		t.Errorf("an address added a slot ago: landed %v with %v, want it to serve", landed, err)
	}
	if got := l.balance(bank.Processed, address("other")); got != 4_000_000 {
		t.Errorf("the account of the tables has %d lamports, want both transfers", got)
	}
}

func TestADeactivatedTableServesAsLongAsItsSlotIsRecent(t *testing.T) {
	t.Parallel()
	h := layout.Header{DeactivationSlot: 1}
	account := tableOf("to")
	copy(account.Data, h.Bytes())
	l := newTableLedger(t, map[string]bank.Account{"table": account})
	l.Advance(layout.RecentSlots)
	if landed, err := l.Submit(l.pay("table", 0)); !landed || err != nil {
		t.Fatalf("after 512 blocks: landed %v with %v, want it to serve", landed, err)
	}
	l.Advance(1)
	if _, err := l.Submit(l.pay("table", 0)); wire(t, err) != `"AddressLookupTableNotFound"` {
		t.Errorf("after 513 blocks: %v, want the table gone", err)
	}
}

// TestLoadedAccountsFollowTheOwnOnes looks at the order of the accounts, their
// rights and what a program gets of them.
func TestLoadedAccountsFollowTheOwnOnes(t *testing.T) {
	t.Parallel()
	type passed struct {
		Key              solana.PublicKey
		Signer, Writable bool
	}
	var got []passed
	program := mischief(func(v *bank.Invocation) error {
		got = nil
		for i := range v.Accounts() {
			a := at(v, i)
			got = append(got, passed{a.Key(), a.IsSigner(), a.IsWritable()})
		}
		return nil
	})
	l := newTableLedger(t, map[string]bank.Account{
		"one": tableOf("a", "b", "c"), "two": lookuptable.Table([]solana.PublicKey{address("d"), solana.SystemProgramID}),
	}, program)
	tx := l.signV0([]solana.PublicKey{program.ID}, []solana.MessageAddressTableLookup{
		{AccountKey: address("one"), WritableIndexes: []uint8{2}, ReadonlyIndexes: []uint8{0}},
		{AccountKey: address("two"), WritableIndexes: []uint8{1}, ReadonlyIndexes: []uint8{0}},
	}, 1, []uint16{5, 4, 3, 2, 0}, nil)
	if landed, err := l.Submit(tx); !landed || err != nil {
		t.Fatalf("landed %v with %v", landed, err)
	}
	want := []passed{
		{address("d"), false, false}, {address("a"), false, false},
		{solana.SystemProgramID, false, false}, // no transaction can write it
		{address("c"), false, true}, {address("wallet"), true, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the program's accounts (-want +got):\n%s", diff)
	}
	l.Read(bank.Processed, func(v bank.View) {
		landed := v.Transaction(tx.Signature())
		wantKeys := []solana.PublicKey{
			address("wallet"), program.ID, address("c"), solana.SystemProgramID, address("a"), address("d"),
		}
		if diff := cmp.Diff(wantKeys, landed.Keys); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		wantLoaded := bank.LoadedAddresses{
			Writable: []solana.PublicKey{address("c"), solana.SystemProgramID},
			Readonly: []solana.PublicKey{address("a"), address("d")},
		}
		if diff := cmp.Diff(wantLoaded, landed.Loaded); diff != "" {
			t.Errorf("loaded addresses (-want +got):\n%s", diff)
		}
		if n := len(landed.Meta.PreBalances); n != len(wantKeys) {
			t.Errorf("there are %d balances, want one for each key", n)
		}
		for _, name := range []string{"a", "c", "d", "wallet"} {
			if found := v.ByAddress(bank.AddressQuery{Address: address(name), Limit: 1}); len(found) != 1 || found[0].Signature() != tx.Signature() {
				t.Errorf("by the address of %s there are %d transactions, want this one first", name, len(found))
			}
		}
		if found := v.ByAddress(bank.AddressQuery{Address: address("one"), Limit: 9}); len(found) != 0 {
			t.Errorf("the table itself has %d transactions, want none: they do not name it as an account", len(found))
		}
	})
}

func TestLoadedAccountsAreCheckedLikeOwnOnes(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprint("account ", i)
	}
	l := newTableLedger(t, map[string]bank.Account{"table": tableOf("wallet", "a"), "many": tableOf(many...)})
	all := func(n int) (out []uint8) {
		for i := range n {
			out = append(out, uint8(i))
		}
		return out
	}
	tests := map[string]struct {
		lookups []solana.MessageAddressTableLookup
		want    string
	}{
		"an account that is named as well": {[]solana.MessageAddressTableLookup{
			{AccountKey: address("table"), ReadonlyIndexes: []uint8{0}}}, `"AccountLoadedTwice"`},
		"an account that is loaded twice": {[]solana.MessageAddressTableLookup{
			{AccountKey: address("table"), ReadonlyIndexes: []uint8{1}, WritableIndexes: []uint8{1}}}, `"AccountLoadedTwice"`},
		"64 accounts": {[]solana.MessageAddressTableLookup{
			{AccountKey: address("many"), ReadonlyIndexes: all(62)}}, `null`},
		"65 accounts": {[]solana.MessageAddressTableLookup{
			{AccountKey: address("many"), ReadonlyIndexes: all(63)}}, `"TooManyAccountLocks"`},
	}
	for name, test := range tests {
		tx := l.signV0([]solana.PublicKey{solana.SystemProgramID}, test.lookups, 1, []uint16{0, 0},
			[]byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
		if _, err := l.Submit(tx); wire(t, err) != test.want {
			t.Errorf("%s: got %s, want %s", name, wire(t, err), test.want)
		}
	}
}

// TestLoadedAccountsCountInABlock fills the account that a table holds, and has
// what waits land in the next block.
func TestLoadedAccountsCountInABlock(t *testing.T) {
	t.Parallel()
	l := newTableLedger(t, map[string]bank.Account{"table": tableOf("busy", "idle")}, hog())
	call := func(payer string, index uint8, units uint64) *bank.Transaction {
		k := units / 1000
		tx := &solana.Transaction{Message: solana.Message{
			Header:          solana.MessageHeader{NumRequiredSignatures: 1, NumReadonlyUnsignedAccounts: 2},
			AccountKeys:     []solana.PublicKey{address(payer), address("hog"), solana.ComputeBudget},
			RecentBlockhash: l.blockhash(bank.Processed),
			Instructions: []solana.CompiledInstruction{
				{ProgramIDIndex: 2, Data: unitLimitData(1_400_000)},
				{ProgramIDIndex: 1, Accounts: []uint16{3}, Data: []byte{byte(k), byte(k >> 8)}},
			},
			AddressTableLookups: []solana.MessageAddressTableLookup{{AccountKey: address("table"), WritableIndexes: []uint8{index}}},
		}}
		tx.Message.SetVersion(solana.MessageVersionV0)
		return l.encode(tx, []solana.PrivateKey{key(payer)})
	}
	for i := range 11 {
		l.mustLand(key("faucet"), transferFrom("faucet", fmt.Sprint("payer ", i), walletStart))
	}
	for i := range 9 {
		if landed, err := l.Submit(call(fmt.Sprint("payer ", i), 0, hogUnits)); !landed || err != nil {
			t.Fatalf("call %d: landed %v with %v", i, landed, err)
		}
	}
	late := call("payer 9", 0, hogUnits)
	if landed, err := l.Submit(late); landed || err != nil {
		t.Errorf("landed %v with %v, want it to wait: 12 million units write the loaded account", landed, err)
	}
	if landed, err := l.Submit(call("payer 10", 1, hogUnits)); !landed || err != nil {
		t.Errorf("landed %v with %v, want it in: it writes another account", landed, err)
	}
	l.Advance(1)
	if err := l.meta(late.Signature()).Err; err != nil || l.Waiting() != 0 {
		t.Errorf("%d wait on and it gives %v, want it in the next block", l.Waiting(), err)
	}
}

func unitLimitData(units uint32) []byte {
	data, err := unitLimit(units).Data()
	if err != nil {
		panic(err)
	}
	return data
}

// TestAForkResolvesAgain lands a transaction with an address that was added in
// a block which a fork undoes, with the extension and without.
func TestAForkResolvesAgain(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"the extension lands again": true, "the extension is lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTableLedger(t, nil)
			l.Advance(1)
			create, table, err := lookuptable.Create(l.wallet.PublicKey(), l.wallet.PublicKey(), 1)
			if err != nil {
				t.Fatal(err)
			}
			l.mustLand(l.wallet, create)
			extend := l.mustLand(l.wallet, lookuptable.Extend(table, l.wallet.PublicKey(), l.wallet.PublicKey(),
				[]solana.PublicKey{address("to"), address("other")}))
			l.Advance(1)
			pay := l.signV0([]solana.PublicKey{solana.SystemProgramID},
				[]solana.MessageAddressTableLookup{{AccountKey: table, WritableIndexes: []uint8{1}}},
				1, []uint16{0, 2}, []byte{2, 0, 0, 0, 0x80, 0x84, 0x1e, 0, 0, 0, 0, 0})
			if landed, err := l.Submit(pay); !landed || err != nil {
				t.Fatalf("landed %v with %v", landed, err)
			}
			// All land in one new block, where what was added is not usable yet:
			// an address that serves must be older than its transaction.
			undone, err := l.Fork(2, func(of *bank.Landed) bool { return kept || of.Signature() != extend.Signature() })
			if err != nil || len(undone) != 3 {
				t.Fatalf("undone %d with %v, want 3", len(undone), err)
			}
			l.Read(bank.Processed, func(v bank.View) {
				if v.Transaction(pay.Signature()) != nil {
					t.Error("the transfer has landed, want it refused: its address is not usable in this block")
				}
			})
			l.Advance(1)
			landed, failure := l.Submit(l.signV0([]solana.PublicKey{solana.SystemProgramID},
				[]solana.MessageAddressTableLookup{{AccountKey: table, WritableIndexes: []uint8{1}}},
				1, []uint16{0, 2}, []byte{2, 0, 0, 0, 0x80, 0x84, 0x1e, 0, 0, 0, 0, 0}))
			want := map[bool]string{true: "null", false: `"InvalidAddressLookupTableIndex"`}[kept]
			if got := wire(t, failure); landed != kept || got != want {
				t.Errorf("afterwards landed %v with %s, want %s", landed, got, want)
			}
		})
	}
}

// TestATransactionWithATableLandsAgainAfterAFork has the table survive.
func TestATransactionWithATableLandsAgainAfterAFork(t *testing.T) {
	t.Parallel()
	l := newTableLedger(t, map[string]bank.Account{"table": tableOf("to")})
	l.Advance(3)
	tx := l.pay("table", 0)
	if landed, err := l.Submit(tx); !landed || err != nil {
		t.Fatalf("landed %v with %v", landed, err)
	}
	if _, err := l.Fork(1, bank.LandAgain); err != nil {
		t.Fatal(err)
	}
	if got := l.balance(bank.Processed, address("to")); got != 2_000_000 {
		t.Errorf("the recipient has %d lamports, want the transfer's", got)
	}
	if _, err := l.Submit(tx); wire(t, err) != `"AlreadyProcessed"` {
		t.Errorf("sent again it gives %s, want AlreadyProcessed", wire(t, err))
	}
	l.Read(bank.Processed, func(v bank.View) {
		if found := v.ByAddress(bank.AddressQuery{Address: address("to"), Limit: 9}); len(found) != 1 {
			t.Errorf("%d transactions by the loaded address, want one", len(found))
		}
	})
}
