package bank_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// webTransaction reads a Transact that @solana/web3.js signed, and the fields that
// the test expects in it. dataHash is the SHA-256 of the instruction data in hex.
func webTransaction(t testing.TB) (raw []byte, recipient, blockhash, dataHash string) {
	t.Helper()
	file, err := os.ReadFile("testdata/solana.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Transact struct {
			Recipient   string `json:"recipient"`
			Blockhash   string `json:"blockhash"`
			Transaction []byte `json:"transaction_base64"`
			DataSHA256  string `json:"instruction_data_sha256"`
		} `json:"transact"`
	}
	if err := json.Unmarshal(file, &vectors); err != nil {
		t.Fatal(err)
	}
	v := vectors.Transact
	return v.Transaction, v.Recipient, v.Blockhash, v.DataSHA256
}

func TestTransactionOfWeb3JSIsDecoded(t *testing.T) {
	t.Parallel()
	raw, recipient, blockhash, dataHash := webTransaction(t)
	tx, err := bank.DecodeTransaction(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !tx.VerifySignatures() {
		t.Error("its signature does not verify")
	}
	if got := tx.RecentBlockhash.String(); got != blockhash {
		t.Errorf("blockhash is %s, want %s", got, blockhash)
	}
	budget, budgetErr := tx.Budget()
	if diff := cmp.Diff(bank.Budget{Units: 400_000, Price: 10_000, LoadedData: 64 << 20}, budget); diff != "" || budgetErr != nil {
		t.Errorf("budget has error %v (-want +got):\n%s", budgetErr, diff)
	}
	if got := budget.Fee(1); got != 5000+4000 {
		t.Errorf("fee is %d lamports, want 9000", got)
	}
	if n := len(tx.Instructions); n != 3 {
		t.Fatalf("%d instructions, want 3", n)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(tx.Instructions[2].Data)); got != dataHash {
		t.Errorf("sha256 of Transact's data is %s, want %s", got, dataHash)
	}
	type account struct {
		Key      string
		Writable bool
	}
	var got []account
	for _, i := range tx.Instructions[2].Accounts {
		got = append(got, account{tx.Keys[i].String(), tx.Writable[i]})
	}
	want := []account{
		{tx.Keys[0].String(), true},
		{"3LXJBnZqS85UumKKw98SjKZFhtBhExiBXkdEDL1doWWA", true},
		{"6HE1CjaNAPEq8Hj7jor9zCMtwc4m9FQyzb2QNN3dRLe5", true},
		{"GQuRgbCdWVcKHb4cSGKAvcQCJ3aCDhFDeiXhqw7Bybyr", true},
		{"9tws8PNq9fyYzEqZtEajfkRRVJsx6NExxwCD4oDLMTZG", true},
		{"ACamzxCUzdB3JdkA1MJBEeXQNRnqhRuVa25ezfuBW1Sr", true},
		{recipient, true},
		{solana.SystemProgramID.String(), false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("accounts of Transact (-want +got):\n%s", diff)
	}
	raw[len(raw)-1] ^= 1
	if tampered, err := bank.DecodeTransaction(raw); err == nil && tampered.VerifySignatures() {
		t.Error("the signature verifies after a byte was changed")
	}
}

func TestDecodeTransactionRefuses(t *testing.T) {
	t.Parallel()
	key := func(b byte) solana.PublicKey { return solana.PublicKey{b} }
	signature := solana.Signature{}
	message := func(change func(*solana.Message)) *solana.Transaction {
		tx := &solana.Transaction{
			Signatures: []solana.Signature{signature},
			Message: solana.Message{
				Header:       solana.MessageHeader{NumRequiredSignatures: 1, NumReadonlyUnsignedAccounts: 1},
				AccountKeys:  solana.PublicKeySlice{key(1), key(2), key(3)},
				Instructions: []solana.CompiledInstruction{{ProgramIDIndex: 2, Accounts: []uint16{0, 1}, Data: []byte{7}}},
			},
		}
		change(&tx.Message)
		return tx
	}
	bytesOf := func(tx *solana.Transaction) []byte {
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	whole := bytesOf(message(func(*solana.Message) {}))
	twoSignatures := message(func(*solana.Message) {})
	twoSignatures.Signatures = append(twoSignatures.Signatures, signature)
	tests := map[string]struct {
		raw  []byte
		want string // the kind of transaction error; empty when the bytes are not a transaction
	}{
		"no bytes":             {nil, ""},
		"a missing last byte":  {whole[:len(whole)-1], ""},
		"a byte after its end": {append(append([]byte{}, whole...), 0), ""},
		"more than a packet":   {make([]byte, bank.MaxTransactionSize+1), ""},
		"a non-minimal length": {append([]byte{0x81, 0x00}, whole[1:]...), ""},
		"an unknown version":   {append(append([]byte{}, whole[:65]...), append([]byte{0x81}, whole[65:]...)...), ""},
		"more signatures":      {bytesOf(twoSignatures), "SanitizeFailure"},
		"no signature":         {bytesOf(&solana.Transaction{Message: message(func(m *solana.Message) { m.Header.NumRequiredSignatures = 0 }).Message}), "SanitizeFailure"},
		"too few keys":         {bytesOf(message(func(m *solana.Message) { m.Header.NumReadonlyUnsignedAccounts = 3 })), "SanitizeFailure"},
		"a read-only payer":    {bytesOf(message(func(m *solana.Message) { m.Header.NumReadonlySignedAccounts = 1 })), "SanitizeFailure"},
		"the payer as program": {bytesOf(message(func(m *solana.Message) { m.Instructions[0].ProgramIDIndex = 0 })), "SanitizeFailure"},
		"a program index too high": {
			bytesOf(message(func(m *solana.Message) { m.Instructions[0].ProgramIDIndex = 3 })), "SanitizeFailure"},
		"an account index too high": {
			bytesOf(message(func(m *solana.Message) { m.Instructions[0].Accounts[1] = 3 })), "SanitizeFailure"},
		"a program from a lookup table": {
			bytesOf(message(func(m *solana.Message) {
				m.AddAddressTableLookup(solana.MessageAddressTableLookup{AccountKey: key(9), ReadonlyIndexes: []uint8{0}})
				m.Instructions[0].ProgramIDIndex = 3
			})), "SanitizeFailure"},
		"a loaded account index too high": {
			bytesOf(message(func(m *solana.Message) {
				m.AddAddressTableLookup(solana.MessageAddressTableLookup{AccountKey: key(9), ReadonlyIndexes: []uint8{0}})
				m.Instructions[0].Accounts[1] = 4
			})), "SanitizeFailure"},
		"an empty lookup": {
			bytesOf(message(func(m *solana.Message) {
				m.AddAddressTableLookup(solana.MessageAddressTableLookup{AccountKey: key(9)})
			})), "SanitizeFailure"},
		"more than 256 accounts": {
			bytesOf(message(func(m *solana.Message) {
				m.AddAddressTableLookup(solana.MessageAddressTableLookup{AccountKey: key(9), WritableIndexes: make([]uint8, 254)})
			})), "SanitizeFailure"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := bank.DecodeTransaction(test.raw)
			if err == nil {
				t.Fatal("decoded, want an error")
			}
			var broken *bank.TransactionError
			got := ""
			if errors.As(err, &broken) {
				got = strings.Trim(wire(t, broken), `"`)
			}
			if got != test.want {
				t.Errorf("got kind %q (%v), want %q", got, err, test.want)
			}
		})
	}
	v0 := message(func(m *solana.Message) { mustVersion0(t, m) })
	for name, raw := range map[string][]byte{"legacy": whole, "v0 without lookups": bytesOf(v0)} {
		tx, err := bank.DecodeTransaction(raw)
		if err != nil {
			t.Errorf("%s: %v, want it decoded", name, err)
			continue
		}
		if diff := cmp.Diff([]bool{true, true, false}, tx.Writable); diff != "" {
			t.Errorf("%s: writable accounts (-want +got):\n%s", name, diff)
		}
	}
}

func TestProgramsAreNeverWritable(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	program := solana.NewAccountMeta(solana.SystemProgramID, true, false)
	invoked := solana.NewAccountMeta(address("program"), true, false)
	tx := l.sign(solana.Hash{}, []solana.PrivateKey{l.wallet},
		solana.NewInstruction(invoked.PublicKey, solana.AccountMetaSlice{program, invoked}, nil))
	for i, k := range tx.Keys {
		if i > 0 && tx.Writable[i] {
			t.Errorf("%s is writable, want only the payer writable", k)
		}
	}
}

func FuzzDecodeTransaction(f *testing.F) {
	raw, _, _, _ := webTransaction(f)
	f.Add(raw)
	f.Add(raw[:65])
	v0, err := base64.StdEncoding.DecodeString("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgAEAAAEBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(v0)
	f.Fuzz(func(t *testing.T, raw []byte) {
		tx, err := bank.DecodeTransaction(raw)
		if err != nil {
			return
		}
		// Every method of a decoded transaction must work without a panic.
		tx.VerifySignatures()
		if budget, err := tx.Budget(); err == nil && budget.Units > bank.MaxUnits {
			t.Errorf("the compute limit is %d units, want at most %d", budget.Units, bank.MaxUnits)
		}
		if len(tx.Writable) != len(tx.Keys) {
			t.Errorf("%d keys have %d writable flags", len(tx.Keys), len(tx.Writable))
		}
	})
}
