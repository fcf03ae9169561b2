package rpc

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
)

var (
	payerKey = solana.PublicKey{10}
	program  = solana.PublicKey{20}
	router   = solana.PublicKey{21}
	treeKey  = solana.PublicKey{30}
	poolKey  = solana.PublicKey{31}
	table    = solana.PublicKey{40}
)

func testTransaction(options ...solana.TransactionOption) ([]byte, error) {
	tx, err := solana.NewTransaction([]solana.Instruction{
		solana.NewInstruction(router, solana.AccountMetaSlice{solana.Meta(payerKey).SIGNER().WRITE(), solana.Meta(treeKey).WRITE()}, []byte{1}),
		solana.NewInstruction(program, solana.AccountMetaSlice{solana.Meta(poolKey), solana.Meta(treeKey).WRITE()}, []byte{2}),
	}, hashA, append(options, solana.TransactionPayer(payerKey))...)
	if err != nil {
		return nil, err
	}
	tx.Signatures = []solana.Signature{sigA}
	return tx.MarshalBinary()
}

// indexIn finds an address among a transaction's own keys.
func indexIn(t *testing.T, raw []byte, key solana.PublicKey) int {
	t.Helper()
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range tx.Message.AccountKeys {
		if k == key {
			return i
		}
	}
	t.Fatalf("%s is not among the transaction's own keys", key)
	return 0
}

func readBlock(t *testing.T, transactions ...string) (*onchain.Block, *node, error) {
	t.Helper()
	n := newNode(t, result(fmt.Sprintf(`{"blockhash":%q,"previousBlockhash":%q,"parentSlot":6,"blockHeight":5,"blockTime":1,"transactions":[%s]}`,
		hashA, solana.Hash{2}, strings.Join(transactions, ","))))
	b, err := newClient(t, Options{URL: n.URL}).Block(t.Context(), 8)
	return b, n, err
}

func withMeta(tx []byte, meta string) string {
	return fmt.Sprintf(`{"transaction":[%q,"base64"],"version":0,"meta":%s}`, base64.StdEncoding.EncodeToString(tx), meta)
}

func TestBlockKeepsTheOrderOfExecution(t *testing.T) {
	t.Parallel()
	tx, err := testTransaction()
	if err != nil {
		t.Fatal(err)
	}
	// The router calls the program twice before the outer call to it.
	meta := fmt.Sprintf(`{"err":null,"innerInstructions":[{"index":0,"instructions":[
		{"programIdIndex":%[1]d,"accounts":[%[2]d],"data":"2","stackHeight":2},
		{"programIdIndex":%[1]d,"accounts":[],"data":"","stackHeight":3}]}]}`, indexIn(t, tx, program), indexIn(t, tx, treeKey))
	failed := withMeta(tx, `{"err":{"InstructionError":[1,{"Custom":1}]},"innerInstructions":null}`)
	got, n, err := readBlock(t, withMeta(tx, meta), failed)
	if err != nil {
		t.Fatal(err)
	}
	first := onchain.Instruction{ProgramID: router, Accounts: []solana.PublicKey{payerKey, treeKey}, Data: []byte{1}}
	second := onchain.Instruction{ProgramID: program, Accounts: []solana.PublicKey{poolKey, treeKey}, Data: []byte{2}}
	want := &onchain.Block{
		Slot: 8, Parent: 6, Hash: hashA, ParentHash: solana.Hash{2},
		Transactions: []onchain.BlockTransaction{
			{Signature: sigA, FeePayer: payerKey, Instructions: []onchain.Instruction{
				first,
				{ProgramID: program, Accounts: []solana.PublicKey{treeKey}, Data: []byte{1}},
				{ProgramID: program, Accounts: []solana.PublicKey{}, Data: []byte{}},
				second,
			}},
			{Signature: sigA, FeePayer: payerKey, Failed: true, Instructions: []onchain.Instruction{first, second}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("block differs (-want +got):\n%s", diff)
	}
	_, method, params := n.received()
	wantParams := `[8,{"commitment":"confirmed","encoding":"base64","maxSupportedTransactionVersion":0,"rewards":false,"transactionDetails":"full"}]`
	if method != "getBlock" || string(params) != wantParams {
		t.Errorf("asked %s %s, want getBlock %s", method, params, wantParams)
	}
}

func TestBlockResolvesLookupTables(t *testing.T) {
	t.Parallel()
	// The pool is read from the table, the tree written: the network numbers the written ones
	// first, in any order of the table.
	tx, err := testTransaction(solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table: {poolKey, treeKey}}))
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err := solana.TransactionFromBytes(tx); err != nil || parsed.Message.NumLookups() != 2 {
		t.Fatalf("the transaction loads %d addresses, want 2", parsed.Message.NumLookups())
	}
	got, _, err := readBlock(t, withMeta(tx, fmt.Sprintf(`{"err":null,"innerInstructions":[],"loadedAddresses":{"writable":[%q],"readonly":[%q]}}`, treeKey, poolKey)))
	if err != nil {
		t.Fatal(err)
	}
	want := []onchain.Instruction{
		{ProgramID: router, Accounts: []solana.PublicKey{payerKey, treeKey}, Data: []byte{1}},
		{ProgramID: program, Accounts: []solana.PublicKey{poolKey, treeKey}, Data: []byte{2}},
	}
	if diff := cmp.Diff(want, got.Transactions[0].Instructions); diff != "" {
		t.Errorf("instructions differ (-want +got):\n%s", diff)
	}
	if _, _, err := readBlock(t, withMeta(tx, `{"err":null}`)); err == nil {
		t.Error("a block without the loaded addresses is taken: its instructions cannot be known")
	}
}

func TestBlockThatCannotBeTrusted(t *testing.T) {
	t.Parallel()
	tx, err := testTransaction()
	if err != nil {
		t.Fatal(err)
	}
	inner := func(instruction string) string {
		return `{"err":null,"innerInstructions":[{"index":0,"instructions":[` + instruction + `]}]}`
	}
	tests := map[string]string{
		"a transaction without meta":            withMeta(tx, `null`),
		"a transaction cut short":               withMeta(tx[:100], `{"err":null}`),
		"a transaction in another encoding":     `{"transaction":["2","base58"],"meta":{"err":null}}`,
		"a transaction that is not base64":      `{"transaction":["?","base64"],"meta":{"err":null}}`,
		"an inner program out of range":         withMeta(tx, inner(`{"programIdIndex":99,"accounts":[],"data":""}`)),
		"an inner account out of range":         withMeta(tx, inner(`{"programIdIndex":0,"accounts":[99],"data":""}`)),
		"an inner account below zero":           withMeta(tx, inner(`{"programIdIndex":0,"accounts":[-1],"data":""}`)),
		"an inner instruction without a number": withMeta(tx, inner(`{"programIdIndex":"x","accounts":[],"data":""}`)),
	}
	for name, transaction := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, err := readBlock(t, transaction)
			if b != nil {
				t.Error("a block is returned")
			}
			checkError(t, err, onchain.KindBadResponse, 0, nil)
		})
	}
	t.Run("a block without its transactions", func(t *testing.T) {
		t.Parallel()
		n := newNode(t, result(fmt.Sprintf(`{"blockhash":%q,"parentSlot":6,"signatures":[]}`, hashA)))
		_, err := newClient(t, Options{URL: n.URL}).Block(t.Context(), 8)
		checkError(t, err, onchain.KindBadResponse, 0, nil)
	})
}

func BenchmarkDecodeBlock(b *testing.B) {
	tx, err := testTransaction()
	if err != nil {
		b.Fatal(err)
	}
	one := withMeta(tx, `{"err":null,"innerInstructions":[],"loadedAddresses":{"writable":[],"readonly":[]}}`)
	raw := fmt.Appendf(nil, `{"blockhash":%q,"parentSlot":6,"transactions":[%s]}`, hashA, strings.Repeat(one+",", 1499)+one)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		var w wireBlock
		if err := json.Unmarshal(raw, &w); err != nil {
			b.Fatal(err)
		}
		if _, err := w.decode(8); err != nil {
			b.Fatal(err)
		}
	}
}
