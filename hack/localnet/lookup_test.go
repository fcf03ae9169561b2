package localnet_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// signV0 makes a v0 transaction of the payer with a lookup table. solana-go builds the
// lookups from addresses, which may differ from the table's content.
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

// withTable is a chain with a lookup table of n addresses.
func withTable(t *testing.T, n int) (f *fixture, table solana.PublicKey, to []solana.PublicKey) {
	t.Helper()
	for i := range n {
		to = append(to, address(fmt.Sprint("recipient ", i)))
	}
	table = address("table")
	return newFixture(t, localnet.Options{Accounts: map[solana.PublicKey]bank.Account{table: bank.LookupTable(to...)}}), table, to
}

// transfersTo are transfers to the accounts of to, one instruction for each account.
func (f *fixture) transfersTo(to []solana.PublicKey) (instructions []solana.Instruction) {
	for _, key := range to {
		instructions = append(instructions, system.NewTransferInstruction(1_000_000, f.payer.PublicKey(), key).Build())
	}
	return instructions
}

func encoded(t testing.TB, tx *solana.Transaction) string {
	t.Helper()
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// TestTransactionLoadsAccountsFromALookupTable sends a transaction that fits in a packet only with a
// lookup table, and reads it back by balance, address and block.
func TestTransactionLoadsAccountsFromALookupTable(t *testing.T) {
	t.Parallel()
	f, table, to := withTable(t, 40)
	ctx := context.Background()
	instructions := f.transfersTo(to)
	tx := f.signV0(f.blockhash(rpc.CommitmentProcessed), table, to, instructions...)
	signature := f.send(tx)
	slot := uint64(33)
	f.Finalize()
	for _, key := range to {
		if balance, err := f.GetBalance(ctx, key, rpc.CommitmentFinalized); err != nil || balance.Value != 1_000_000 {
			t.Fatalf("%s has balance %+v with error %v, want 1000000", key, balance, err)
		}
	}
	found, err := f.GetSignaturesForAddress(ctx, to[17])
	if err != nil || len(found) != 1 || found[0].Signature != signature {
		t.Errorf("transactions of a loaded address are %+v with error %v, want the one sent", found, err)
	}

	// solana-go reads the block and resolves the accounts of the instructions.
	version := uint64(1)
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
}

func TestUnresolvableTransactionIsRefused(t *testing.T) {
	t.Parallel()
	f, table, to := withTable(t, 2)
	instructions := f.transfersTo(to)
	hash := f.blockhash(rpc.CommitmentFinalized)
	checkRefused := func(name string, got answer, want string) {
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
	missingTable := f.signV0(hash, address("nowhere"), to, instructions...)
	checkRefused("no table", send(missingTable, `"skipPreflight":false`), notFound)
	checkRefused("no table, without preflight", send(missingTable, `"skipPreflight":true`), notFound)
	checkRefused("no table, simulated", f.call("simulateTransaction", `["`+encoded(t, missingTable)+`",{"encoding":"base64"}]`), notFound)
	checkRefused("a wallet instead of a table", send(f.signV0(hash, f.payer.PublicKey(), to, instructions...), `"skipPreflight":true`), badOwner)
	beyond := append(append([]solana.PublicKey{address("unused")}, to...), address("unused 2"))
	checkRefused("an index beyond the table", send(f.signV0(hash, table, beyond, instructions...), `"skipPreflight":true`), badIndex)
}
