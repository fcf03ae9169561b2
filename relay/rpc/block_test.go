package rpc

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/go-json-experiment/json/jsontext"
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

// indexIn returns the index of an address among a transaction's own keys.
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
	b, err := newClient(t, Options{URL: n.URL}).Block(t.Context(), 8, treeKey)
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
	// The router calls the program twice before the transaction's own call of the program.
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
	wantParams := `[8,{"commitment":"confirmed","encoding":"base64","maxSupportedTransactionVersion":1,"rewards":false,"transactionDetails":"full"}]`
	if method != "getBlock" || string(params) != wantParams {
		t.Errorf("the request is %s %s, want getBlock %s", method, params, wantParams)
	}
}

func TestBlockResolvesLookupTables(t *testing.T) {
	t.Parallel()
	// The pool is read-only, the tree is writable. The network numbers writable addresses of a
	// lookup table before read-only ones, in whichever order they are in the table.
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
	if _, _, err := readBlock(t, withMeta(tx, `{"err":null,"innerInstructions":[]}`)); err == nil {
		t.Error("a block without the loaded addresses is accepted although its instructions are unknown")
	}
}

func TestInvalidBlockIsRefused(t *testing.T) {
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
		"a later transaction without meta":      withMeta(tx, noMeta) + `,{"transaction":` + encoded(tx) + `}`,
		"a later transaction without bytes":     withMeta(tx, noMeta) + `,{"meta":` + noMeta + `}`,
		"a truncated transaction that loads it": withMeta(make([]byte, 40), `{"err":null,"innerInstructions":[],"loadedAddresses":{"writable":["`+treeKey.String()+`"],"readonly":[]}}`),
		"a truncated transaction":               withMeta(tx[:len(tx)-1], `{"err":null}`),
		"no record of inner instructions":       withMeta(tx, `{"err":null,"innerInstructions":null}`),
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
				t.Error("an invalid block is returned")
			}
			checkError(t, err, onchain.KindBadResponse, 0, nil)
		})
	}
	t.Run("a block without its transactions", func(t *testing.T) {
		t.Parallel()
		n := newNode(t, result(fmt.Sprintf(`{"blockhash":%q,"parentSlot":6,"signatures":[]}`, hashA)))
		_, err := newClient(t, Options{URL: n.URL}).Block(t.Context(), 8, treeKey)
		checkError(t, err, onchain.KindBadResponse, 0, nil)
	})
}

// v1Transaction returns another sender's transaction of version 1 that names the accounts.
func v1Transaction(t testing.TB, accounts ...solana.PublicKey) []byte {
	t.Helper()
	metas := solana.AccountMetaSlice{}
	for _, a := range accounts {
		metas = append(metas, solana.Meta(a).WRITE())
	}
	tx, err := solana.NewTransaction([]solana.Instruction{solana.NewInstruction(program, metas, []byte{7})}, hashA, solana.TransactionPayer(payerKey),
		solana.TransactionV1Config(solana.TransactionConfig{}.WithComputeUnitLimit(20_000).WithLoadedAccountsDataSizeLimit(65_536)))
	if err != nil {
		t.Fatal(err)
	}
	tx.Signatures = []solana.Signature{{2, 1}}
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// setVersion changes the version byte of a v1 transaction.
func setVersion(tx []byte, version byte) []byte {
	return append([]byte{versionBit | version}, tx[1:]...)
}

const noMeta = `{"err":null,"innerInstructions":[]}`

func TestBlockReadsVersion1Transactions(t *testing.T) {
	t.Parallel()
	other := v1Transaction(t, poolKey)
	other[len(other)-solana.SignatureLength-1] = 8 // the instruction's data
	got, _, err := readBlock(t, withMeta(v1Transaction(t, treeKey), noMeta), withMeta(other, noMeta))
	if err != nil {
		t.Fatal(err)
	}
	want := []onchain.BlockTransaction{{Signature: solana.Signature{2, 1}, FeePayer: payerKey, Instructions: []onchain.Instruction{
		{ProgramID: program, Accounts: []solana.PublicKey{treeKey}, Data: []byte{7}},
	}}}
	if diff := cmp.Diff(want, got.Transactions); diff != "" || got.UnknownVersions != 0 {
		t.Errorf("%d transactions of unknown versions, want 0; transactions differ (-want +got):\n%s", got.UnknownVersions, diff)
	}
}

// Other senders' transactions may have any version, or not decode at all. The block is read anyway.
func TestBlockIsReadDespiteForeignTransactions(t *testing.T) {
	t.Parallel()
	v0, err := testTransaction(solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table: {poolKey, treeKey}}))
	if err != nil {
		t.Fatal(err)
	}
	own := withMeta(v1Transaction(t, treeKey), noMeta)
	version9 := append([]byte(nil), v0...)
	version9[1+solana.SignatureLength] = versionBit | 9 // the message follows the signatures
	tests := map[string]struct {
		foreign string
		unknown uint64
	}{
		"version 2":                            {withMeta(setVersion(v1Transaction(t, poolKey), 2), noMeta), 1},
		"version 9 in the format of version 0": {withMeta(version9, noMeta), 1},
		"truncated":                            {withMeta(v1Transaction(t, poolKey)[:60], noMeta), 0},
		"logs the tree's address":              {withMeta(v1Transaction(t, poolKey), `{"err":null,"innerInstructions":[],"logMessages":["`+treeKey.String()+`"]}`), 0},
		"invalid UTF-8 in a log":               {withMeta(v1Transaction(t, poolKey), "{\"err\":null,\"logMessages\":[\"\xff\"]}"), 0},
		"fields in another order":              {`{"version":1,"meta":` + noMeta + `,"transaction":` + encoded(v1Transaction(t, poolKey)) + `}`, 0},
		"an unknown field":                     {`{"later":{"a":[1]},` + withMeta(v1Transaction(t, poolKey), noMeta)[1:], 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, err := readBlock(t, test.foreign, own)
			if err != nil {
				t.Fatal(err)
			}
			var signatures []solana.Signature
			for _, tx := range b.Transactions {
				if slices.ContainsFunc(tx.Instructions, func(ix onchain.Instruction) bool { return slices.Contains(ix.Accounts, treeKey) }) {
					signatures = append(signatures, tx.Signature)
				}
			}
			if len(signatures) != 1 || b.UnknownVersions != test.unknown {
				t.Errorf("%d transactions of the tree and %d of unknown versions, want 1 and %d", len(signatures), b.UnknownVersions, test.unknown)
			}
		})
	}
}

func encoded(tx []byte) string {
	return fmt.Sprintf(`[%q,"base64"]`, base64.StdEncoding.EncodeToString(tx))
}

// The tree's address may be from a lookup table, in a meta field before the transaction's bytes.
func TestBlockFindsLoadedAddressInMetaBeforeTransaction(t *testing.T) {
	t.Parallel()
	tx, err := testTransaction(solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table: {poolKey, treeKey}}))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := readBlock(t, fmt.Sprintf(`{"meta":{"err":null,"innerInstructions":[],"loadedAddresses":{"writable":[%q],"readonly":[%q]}},"transaction":%s}`, treeKey, poolKey, encoded(tx)))
	if err != nil || len(b.Transactions) != 1 {
		t.Fatalf("block %+v, error %v: want one transaction", b, err)
	}
}

// JSON allows a node to escape any character of the bytes.
func TestBlockReadsEscapedBytes(t *testing.T) {
	t.Parallel()
	tx := v1Transaction(t, treeKey)
	escaped := strings.Replace(withMeta(tx, noMeta), encoded(tx)[1:3], `"\u00`+fmt.Sprintf("%02x", encoded(tx)[2]), 1)
	b, _, err := readBlock(t, escaped)
	if err != nil || len(b.Transactions) != 1 {
		t.Fatalf("block %+v, error %v: want one transaction", b, err)
	}
}

// A pool's transaction that cannot be decoded may insert leaves, so the block must be refused.
func TestBlockFailsOnUnknownVersionOfPoolTransaction(t *testing.T) {
	t.Parallel()
	_, _, err := readBlock(t, withMeta(setVersion(v1Transaction(t, treeKey), 2), noMeta))
	checkError(t, err, onchain.KindBadResponse, 0, nil)
	for _, part := range []string{"transaction 0", treeKey.String(), "version 2", "update the relay"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want it to name %q", err, part)
		}
	}
}

func TestBlockIsRequestedAgainWithNamedVersion(t *testing.T) {
	t.Parallel()
	refusal := fault(`{"code":-32015,"message":"Transaction version (2) is not supported by the requesting client. Please try the request again with the following configuration parameter: \"maxSupportedTransactionVersion\": 2"}`)
	block := result(fmt.Sprintf(`{"blockhash":%q,"parentSlot":6,"transactions":[]}`, hashA))
	n := newNode(t, refusal, block)
	c := newClient(t, Options{URL: n.URL, Silent: true})
	for range 2 {
		if _, err := c.Block(t.Context(), 8, treeKey); err != nil {
			t.Fatal(err)
		}
	}
	if calls, _, params := n.received(); calls != 3 || !strings.Contains(string(params), `"maxSupportedTransactionVersion":2`) {
		t.Errorf("%d calls, the last with %s: want 3, the last with version 2", calls, params)
	}
	// The call is not repeated if the endpoint names no newer version, and at most once if it
	// refuses that version too.
	for name, answer := range map[string]answer{"no version named": fault(`{"code":-32015,"message":"no"}`), "same refusal again": refusal} {
		n := newNode(t, answer)
		_, err := newClient(t, Options{URL: n.URL}).Block(t.Context(), 8, treeKey)
		if calls, _, _ := n.received(); err == nil || calls > 2 {
			t.Errorf("%s: error %v after %d calls, want an error after at most 2", name, err, calls)
		}
	}
}

// The vectors come from other implementations: @solana/kit and the Rust SDK.
func TestVersion1Vectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/transactions_v1.json")
	if err != nil {
		t.Fatal(err)
	}
	type vector struct {
		Name       string   `json:"name"`
		Wire       string   `json:"wire_hex"`
		ID         string   `json:"txid"`
		Signatures []string `json:"signatures_hex"`
	}
	var file struct{ Vectors, Negative []vector }
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Vectors) < 8 || len(file.Negative) < 12 {
		t.Fatalf("%d valid and %d invalid vectors, error %v; want at least 8 and 12", len(file.Vectors), len(file.Negative), err)
	}
	for _, v := range file.Vectors {
		tx, err := decodeTransaction(unhex(t, v.Wire))
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if tx.Signatures[0].String() != v.ID || len(tx.Signatures) != len(v.Signatures) {
			t.Errorf("%s: signatures are %s, want %d and the first %s", v.Name, tx.Signatures, len(v.Signatures), v.ID)
		}
		if _, err := tx.resolve(&wireMeta{Err: jsontext.Value(`"AccountInUse"`)}); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
	for _, v := range file.Negative {
		if _, err := decodeTransaction(unhex(t, v.Wire)); err == nil {
			t.Errorf("%s: an invalid transaction is decoded", v.Name)
		}
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
