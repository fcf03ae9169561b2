package localnet_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// signV0 makes a v0 transaction of the payer's that takes what it can from a
// table, as solana-go compiles it.
func (f *fixture) signV0(hash solana.Hash, table solana.PublicKey, addresses []solana.PublicKey, instructions ...solana.Instruction) *solana.Transaction {
	f.t.Helper()
	tx, err := solana.NewTransaction(instructions, hash, solana.TransactionPayer(f.payer.PublicKey()),
		solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table: addresses}))
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &f.payer }); err != nil {
		f.t.Fatal(err)
	}
	return tx
}

// pays are transfers to many accounts, one instruction each.
func (f *fixture) pays(n int) (to []solana.PublicKey, instructions []solana.Instruction) {
	for i := range n {
		to = append(to, address(fmt.Sprint("recipient ", i)))
		instructions = append(instructions, system.NewTransferInstruction(1_000_000, f.payer.PublicKey(), to[i]).Build())
	}
	return to, instructions
}

func encoded(t testing.TB, tx *solana.Transaction) string {
	t.Helper()
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// TestATransactionTakesAccountsFromATable sends one that does not fit a packet
// without a table, and reads it back by every method.
func TestATransactionTakesAccountsFromATable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	ctx := context.Background()
	to, instructions := f.pays(40)
	table, err := f.CreateLookupTable(to...)
	if err != nil {
		t.Fatal(err)
	}
	f.Advance(1)
	tx := f.signV0(f.blockhash(rpc.CommitmentProcessed), table, to, instructions...)
	signature := f.send(tx)
	slot := uint64(34)
	f.Finalize()
	for _, key := range to {
		if balance, err := f.GetBalance(ctx, key, rpc.CommitmentFinalized); err != nil || balance.Value != 1_000_000 {
			t.Fatalf("%s has %+v with error %v, want the transfer", key, balance, err)
		}
	}
	found, err := f.GetSignaturesForAddress(ctx, to[17])
	if err != nil || len(found) != 1 || found[0].Signature != signature {
		t.Errorf("by a loaded address there are %+v with error %v, want the transaction", found, err)
	}

	type details struct {
		Transaction struct {
			Message struct {
				AccountKeys         []string
				AddressTableLookups []struct {
					AccountKey                       string
					WritableIndexes, ReadonlyIndexes []int
				}
			}
		}
		Meta struct {
			LoadedAddresses struct{ Writable, Readonly []string }
			PostBalances    []uint64
		}
		Version any
	}
	got := decode[details](t, f.call("getTransaction", `["`+signature.String()+`",{"maxSupportedTransactionVersion":0}]`))
	message := got.Transaction.Message
	if diff := cmp.Diff([]string{f.payer.PublicKey().String(), solana.SystemProgramID.String()}, message.AccountKeys); diff != "" {
		t.Errorf("static keys (-want +got):\n%s", diff)
	}
	if len(message.AddressTableLookups) != 1 || message.AddressTableLookups[0].AccountKey != table.String() ||
		len(message.AddressTableLookups[0].WritableIndexes) != len(to) || message.AddressTableLookups[0].ReadonlyIndexes == nil {
		t.Errorf("lookups are %+v, want all recipients from the table", message.AddressTableLookups)
	}
	var want []string
	for _, i := range message.AddressTableLookups[0].WritableIndexes {
		want = append(want, to[i].String())
	}
	if diff := cmp.Diff(want, got.Meta.LoadedAddresses.Writable); diff != "" {
		t.Errorf("loaded addresses (-want +got):\n%s", diff)
	}
	if got.Meta.LoadedAddresses.Readonly == nil || len(got.Meta.PostBalances) != 2+len(to) || got.Version != 0.0 {
		t.Errorf("meta is %+v of version %v, want a balance for each of 42 accounts and version 0", got.Meta, got.Version)
	}

	// Another library reads the block and gives the instructions their accounts.
	version := uint64(0)
	block, err := f.GetBlockWithOpts(ctx, slot, &rpc.GetBlockOpts{
		Encoding: solana.EncodingBase64, MaxSupportedTransactionVersion: &version, TransactionDetails: rpc.TransactionDetailsFull})
	if err != nil {
		t.Fatal(err)
	}
	read, err := block.Transactions[0].GetTransaction()
	if err != nil {
		t.Fatal(err)
	}
	loaded := block.Transactions[0].Meta.LoadedAddresses
	if err := read.Message.ResolveLookupsWith(loaded.Writable, loaded.ReadOnly); err != nil {
		t.Fatal(err)
	}
	for i, ix := range read.Message.Instructions {
		if paid := read.Message.AccountKeys[ix.Accounts[1]]; paid != to[i] {
			t.Fatalf("instruction %d pays %s, want %s", i, paid, to[i])
		}
	}
	type accountsOnly struct {
		Transactions []struct {
			Transaction struct {
				AccountKeys []struct {
					Pubkey, Source   string
					Signer, Writable bool
				}
			}
		}
	}
	keys := decode[accountsOnly](t, f.call("getBlock", fmt.Sprintf(`[%d,{"transactionDetails":"accounts","maxSupportedTransactionVersion":0}]`, slot))).Transactions[0].Transaction.AccountKeys
	if len(keys) != 42 || keys[1].Source != "transaction" || keys[2].Source != "lookupTable" || !keys[2].Writable || keys[2].Signer || keys[2].Pubkey != want[0] {
		t.Errorf("accounts are %+v, want two of the transaction and 40 of the table", keys)
	}
}

func TestANodeRefusesATransactionThatItCannotResolve(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	to, instructions := f.pays(2)
	table, err := f.CreateLookupTable(to...)
	if err != nil {
		t.Fatal(err)
	}
	f.Finalize() // the table is finalized, the second one is not
	fresh, err := f.CreateLookupTable(to...)
	if err != nil {
		t.Fatal(err)
	}
	hash := f.blockhash(rpc.CommitmentFinalized)
	refused := func(name string, got answer, want string) {
		t.Helper()
		if got.Error == nil || got.Error.Code != -32602 || got.Error.Message != "invalid transaction: "+want {
			t.Errorf("%s gives %s with %+v, want error -32602 with %q", name, got.Result, got.Error, want)
		}
	}
	const (
		notFound = "Transaction loads an address table account that doesn't exist"
		badOwner = "Transaction loads an address table account with an invalid owner"
		badIndex = "Transaction address table lookup uses an invalid index"
	)
	send := func(tx *solana.Transaction, config string) answer {
		return f.call("sendTransaction", `["`+encoded(t, tx)+`",{"encoding":"base64",`+config+`}]`)
	}
	ofNowhere := f.signV0(hash, address("nowhere"), to, instructions...)
	refused("no table", send(ofNowhere, `"skipPreflight":false`), notFound)
	refused("no table, without preflight", send(ofNowhere, `"skipPreflight":true`), notFound)
	refused("no table, simulated", f.call("simulateTransaction", `["`+encoded(t, ofNowhere)+`",{"encoding":"base64"}]`), notFound)
	refused("a wallet for a table", send(f.signV0(hash, f.payer.PublicKey(), to, instructions...), `"skipPreflight":true`), badOwner)
	beyond := append(append([]solana.PublicKey{address("unused")}, to...), address("unused 2"))
	refused("an index beyond", send(f.signV0(hash, table, beyond, instructions...), `"skipPreflight":true`), badIndex)

	ofFresh := f.signV0(hash, fresh, to, instructions...)
	refused("a table of the same slot", send(ofFresh, `"skipPreflight":true`), badIndex)
	refused("a table that the level does not see", send(ofFresh, `"preflightCommitment":"finalized"`), notFound)
	f.Advance(1)
	if got := send(ofFresh, `"preflightCommitment":"processed"`); got.Error != nil {
		t.Errorf("a slot later it gives %+v, want it accepted", got.Error)
	}
	// A node that lags knows the table no sooner than its state has it.
	if err := f.Endpoint("slow").SetFaults([]fault.Rule{{Lag: 10}}); err != nil {
		t.Fatal(err)
	}
	url, err := f.ListenEndpoint("slow", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	slow := &fixture{Chain: f.Chain, Client: rpc.New(url), t: t, url: url, payer: f.payer}
	another := f.signV0(hash, fresh, to, append(instructions, unitLimit(50_000))...)
	refused("a lagging node", slow.call("sendTransaction", `["`+encoded(t, another)+`",{"encoding":"base64","skipPreflight":true}]`), notFound)
}

func TestASimulationGivesTheAccountsOfATable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	to, instructions := f.pays(30)
	table, err := f.CreateLookupTable(to...)
	if err != nil {
		t.Fatal(err)
	}
	f.Finalize()
	f.Advance(1) // in its own slot it serves nobody
	tx := f.signV0(f.blockhash(rpc.CommitmentFinalized), table, to, instructions...)
	texts, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	type simulation struct {
		Value struct {
			Err      any
			Accounts []struct{ Lamports uint64 }
		}
	}
	got := decode[simulation](t, f.call("simulateTransaction", `["`+encoded(t, tx)+
		`",{"encoding":"base64","accounts":{"encoding":"base64","addresses":`+string(texts)+`}}]`))
	if got.Value.Err != nil || len(got.Value.Accounts) != 30 {
		t.Fatalf("got %+v, want a success with 30 accounts: more than the transaction names itself", got)
	}
	for i, account := range got.Value.Accounts {
		if account.Lamports != 1_000_000 {
			t.Errorf("account %d has %d lamports, want the transfer", i, account.Lamports)
		}
	}
}

func TestLookupTablesOfAChain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	many := make([]solana.PublicKey, 257)
	for i := range many {
		many[i] = address(fmt.Sprint("many ", i))
	}
	if _, err := f.CreateLookupTable(many...); err == nil || !strings.Contains(err.Error(), "make lookup table") {
		t.Errorf("257 addresses give %v, want an error", err)
	}
	seen := map[solana.PublicKey]bool{}
	for range 3 { // in one slot
		table, err := f.CreateLookupTable(many[:256]...)
		if err != nil {
			t.Fatal(err)
		}
		if seen[table] {
			t.Errorf("table %s was made twice", table)
		}
		seen[table] = true
	}
}
