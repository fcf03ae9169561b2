package bank_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// newTableLedger makes a ledger with further accounts at genesis, by name.
func newTableLedger(t testing.TB, accounts map[string]bank.Account, programs ...bank.Program) *ledger {
	t.Helper()
	opts := options(programs...)
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
	return bank.LookupTable(keys...)
}

func mustVersion0(t testing.TB, m *solana.Message) {
	t.Helper()
	if _, err := m.SetVersion(solana.MessageVersionV0); err != nil {
		t.Fatal(err)
	}
}

// signV0 makes a v0 transaction of the wallet with one instruction. Its keys are the wallet, then
// static, then the keys of the lookups. program and accounts are indices in these keys.
func (l *ledger) signV0(static []solana.PublicKey, lookups []solana.MessageAddressTableLookup, program uint16, accounts []uint16, data []byte) *bank.Transaction {
	l.t.Helper()
	tx := &solana.Transaction{Message: solana.Message{
		Header:          solana.MessageHeader{NumRequiredSignatures: 1, NumReadonlyUnsignedAccounts: 1},
		AccountKeys:     append([]solana.PublicKey{l.wallet.PublicKey()}, static...),
		RecentBlockhash: l.blockhash(bank.Processed),
		Instructions:    []solana.CompiledInstruction{{ProgramIDIndex: program, Accounts: accounts, Data: data}},
	}}
	mustVersion0(l.t, &tx.Message)
	tx.Message.AddressTableLookups = lookups
	return l.signTransaction(tx, []solana.PrivateKey{l.wallet})
}

// pay makes a transfer of 2 million lamports from the wallet to the account at an
// index of a table.
func (l *ledger) pay(table string, index uint8) *bank.Transaction {
	l.t.Helper()
	return l.signV0([]solana.PublicKey{solana.SystemProgramID},
		[]solana.MessageAddressTableLookup{{AccountKey: address(table), WritableIndexes: []uint8{index}}},
		1, []uint16{0, 2}, []byte{2, 0, 0, 0, 0x80, 0x84, 0x1e, 0, 0, 0, 0, 0})
}

func TestTransactionWithInvalidLookupTableIsRefused(t *testing.T) {
	t.Parallel()
	with := func(change func(*bank.Account)) bank.Account {
		account := tableOf("to", "other")
		account.Data = slices.Clone(account.Data)
		change(&account)
		return account
	}
	accounts := map[string]bank.Account{
		"good":              tableOf("to", "other"),
		"of another owner":  with(func(a *bank.Account) { a.Owner = solana.SystemProgramID }),
		"empty":             with(func(a *bank.Account) { a.Data = nil }),
		"half a header":     with(func(a *bank.Account) { a.Data = a.Data[:40] }),
		"never initialised": with(func(a *bank.Account) { clear(a.Data[:4]) }),
		"of unknown kind":   with(func(a *bank.Account) { a.Data[0] = 2 }),
	}
	l := newTableLedger(t, accounts)
	l.Skip(1) // slot 2
	l.Advance(2)
	tests := map[string]struct {
		table string
		index uint8
		want  string
	}{
		"a valid table":               {"good", 1, "null"},
		"no table":                    {"nowhere", 0, `"AddressLookupTableNotFound"`},
		"an account that is no table": {"of another owner", 0, `"InvalidAddressLookupTableOwner"`},
		"a table without data":        {"empty", 0, `"InvalidAddressLookupTableData"`},
		"a truncated table":           {"half a header", 0, `"InvalidAddressLookupTableData"`},
		"a table not initialised":     {"never initialised", 0, `"InvalidAddressLookupTableData"`},
		"a table of an unknown kind":  {"of unknown kind", 0, `"InvalidAddressLookupTableData"`},
		"an index beyond the table":   {"good", 2, `"InvalidAddressLookupTableIndex"`},
	}
	for name, test := range tests {
		tx := l.pay(test.table, test.index)
		if got := wire(t, l.Simulate(tx, bank.Processed, false).Meta.Err); got != test.want {
			t.Errorf("%s: the simulation returns %s, want %s", name, got, test.want)
		}
		landed, err := l.Submit(tx)
		if got := wire(t, err); got != test.want || landed != (test.want == "null") {
			t.Errorf("%s: landed %v with %s, want %s", name, landed, got, test.want)
		}
	}
	if got := l.balance(bank.Processed, address("other")); got != 2_000_000 {
		t.Errorf("the account of the table has %d lamports, want 2000000", got)
	}
}

// TestLoadedAccountsFollowStaticAccounts checks the order and the rights of a message's
// static and loaded accounts, and the accounts that a program receives.
func TestLoadedAccountsFollowStaticAccounts(t *testing.T) {
	t.Parallel()
	type passed struct {
		Key              solana.PublicKey
		Signer, Writable bool
	}
	var got []passed
	program := customProgram(func(v *bank.Invocation) error {
		got = nil
		for i := range v.Accounts() {
			a := at(v, i)
			got = append(got, passed{a.Key(), a.IsSigner(), a.IsWritable()})
		}
		return nil
	})
	l := newTableLedger(t, map[string]bank.Account{
		"one": tableOf("a", "b", "c"), "two": bank.LookupTable(address("d"), solana.SystemProgramID),
	}, program)
	tx := l.signV0([]solana.PublicKey{program.ID}, []solana.MessageAddressTableLookup{
		{AccountKey: address("one"), WritableIndexes: []uint8{2}, ReadonlyIndexes: []uint8{0}},
		{AccountKey: address("two"), WritableIndexes: []uint8{1}, ReadonlyIndexes: []uint8{0}},
	}, 1, []uint16{5, 4, 3, 2, 0}, nil)
	if landed, err := l.Submit(tx); !landed || err != nil {
		t.Fatalf("landed %v with error %v, want success", landed, err)
	}
	want := []passed{
		{address("d"), false, false}, {address("a"), false, false},
		{solana.SystemProgramID, false, false}, // no transaction can write this account
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
		wantLoaded := rpc.LoadedAddresses{
			Writable: []solana.PublicKey{address("c"), solana.SystemProgramID},
			ReadOnly: []solana.PublicKey{address("a"), address("d")},
		}
		if diff := cmp.Diff(wantLoaded, landed.Loaded); diff != "" {
			t.Errorf("loaded addresses (-want +got):\n%s", diff)
		}
		if n := len(landed.Meta.PreBalances); n != len(wantKeys) {
			t.Errorf("there are %d balances, want one for each key", n)
		}
		for _, name := range []string{"a", "c", "d", "wallet"} {
			if found := v.ByAddress(bank.AddressQuery{Address: address(name), Limit: 1}); len(found) != 1 || found[0].Signature() != tx.Signature() {
				t.Errorf("address %s has %d transactions, want this one first", name, len(found))
			}
		}
		if found := v.ByAddress(bank.AddressQuery{Address: address("one"), Limit: 9}); len(found) != 0 {
			t.Errorf("the table itself has %d transactions, want none: a lookup does not name the table as an account", len(found))
		}
	})
}

func TestLoadedAccountsAreCheckedLikeStaticAccounts(t *testing.T) {
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
		"an account that the message names itself": {[]solana.MessageAddressTableLookup{
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

// TestLoadedAccountsCountTowardsBlockLimits uses up a block's limit for an account that is loaded from a
// table. The next transaction that writes the account waits and lands in the next block.
func TestLoadedAccountsCountTowardsBlockLimits(t *testing.T) {
	t.Parallel()
	l := newTableLedger(t, map[string]bank.Account{"table": tableOf("busy", "idle")}, unitConsumer())
	call := func(payer string, index uint8, units uint64) *bank.Transaction {
		k := units / 1000
		tx := &solana.Transaction{Message: solana.Message{
			Header:          solana.MessageHeader{NumRequiredSignatures: 1, NumReadonlyUnsignedAccounts: 2},
			AccountKeys:     []solana.PublicKey{address(payer), address("consumer"), solana.ComputeBudget},
			RecentBlockhash: l.blockhash(bank.Processed),
			Instructions: []solana.CompiledInstruction{
				{ProgramIDIndex: 2, Data: unitLimitData(1_400_000)},
				{ProgramIDIndex: 1, Accounts: []uint16{3}, Data: []byte{byte(k), byte(k >> 8)}},
			},
			AddressTableLookups: []solana.MessageAddressTableLookup{{AccountKey: address("table"), WritableIndexes: []uint8{index}}},
		}}
		mustVersion0(t, &tx.Message)
		return l.signTransaction(tx, []solana.PrivateKey{key(payer)})
	}
	for i := range 17 {
		l.mustLand(key("faucet"), transferFrom("faucet", fmt.Sprint("payer ", i), walletStart))
	}
	for i := range 15 {
		if landed, err := l.Submit(call(fmt.Sprint("payer ", i), 0, callUnits)); !landed || err != nil {
			t.Fatalf("call %d: landed %v with error %v, want success", i, landed, err)
		}
	}
	late := call("payer 15", 0, callUnits)
	if landed, err := l.Submit(late); landed || err != nil {
		t.Errorf("landed %v with error %v, want it to wait: 20 million units write the loaded account", landed, err)
	}
	if landed, err := l.Submit(call("payer 16", 1, callUnits)); !landed || err != nil {
		t.Errorf("landed %v with error %v, want it to land: it writes another account", landed, err)
	}
	l.Advance(1)
	if err := l.meta(late.Signature()).Err; err != nil || l.Waiting() != 0 {
		t.Errorf("%d transactions wait and the late one has error %v, want it in the next block", l.Waiting(), err)
	}
}

func unitLimitData(units uint32) []byte {
	data, err := unitLimit(units).Data()
	if err != nil {
		panic(err)
	}
	return data
}

// TestATransactionWithATableLandsAgainAfterAFork uses a table from genesis, which a fork does not
// undo.
func TestATransactionWithATableLandsAgainAfterAFork(t *testing.T) {
	t.Parallel()
	l := newTableLedger(t, map[string]bank.Account{"table": tableOf("to")})
	l.Advance(3)
	tx := l.pay("table", 0)
	if landed, err := l.Submit(tx); !landed || err != nil {
		t.Fatalf("landed %v with error %v, want success", landed, err)
	}
	if _, err := l.Fork(1, bank.LandAgain); err != nil {
		t.Fatal(err)
	}
	if got := l.balance(bank.Processed, address("to")); got != 2_000_000 {
		t.Errorf("the recipient has %d lamports, want 2000000", got)
	}
	if _, err := l.Submit(tx); wire(t, err) != `"AlreadyProcessed"` {
		t.Errorf("sent again: got %s, want AlreadyProcessed", wire(t, err))
	}
	l.Read(bank.Processed, func(v bank.View) {
		if found := v.ByAddress(bank.AddressQuery{Address: address("to"), Limit: 9}); len(found) != 1 {
			t.Errorf("%d transactions by the loaded address, want one", len(found))
		}
	})
}
