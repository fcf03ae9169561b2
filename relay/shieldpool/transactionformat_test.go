package shieldpool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
)

// formatCall is a withdrawal with two notes, and the budget of its transaction.
func formatCall(f Format) (*Call, Compute) {
	in := &PublicInputs{PublicAmount: -1, Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}
	call := &Call{Proof: make([]byte, ProofLength), Inputs: in, Destination: Destination{Recipient: solana.PublicKey{8}}, Notes: [][]byte{{1}, {2, 3}}}
	return call, Compute{Format: f, Limit: 200_000, Price: 10_001, LoadedData: 1 << 16}
}

func encode(t *testing.T, tx *solana.Transaction) []byte {
	t.Helper()
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestOlderFormatsHaveTheBytesOfEarlierReleases compares hashes that were made before V1 was
// known here.
func TestOlderFormatsHaveTheBytesOfEarlierReleases(t *testing.T) {
	t.Parallel()
	pool, payer, hash := solPool(t), solana.PublicKey{9}, solana.Hash{7}
	table := LookupTable{Address: solana.PublicKey{6}, Addresses: pool.Constant()}
	call, compute := formatCall("")
	memo := solana.NewInstruction(solana.MemoProgramID, solana.AccountMetaSlice{solana.Meta(pool.Address)}, []byte("memo"))
	tests := map[string]struct {
		build func() (*solana.Transaction, error)
		want  string
	}{
		"legacy":             {func() (*solana.Transaction, error) { return pool.Transaction(payer, call, compute, hash, nil) }, "ec38f89168bc09bb"},
		"v0":                 {func() (*solana.Transaction, error) { return pool.Transaction(payer, call, compute, hash, &table) }, "cc88176241264c83"},
		"v0 without a table": {func() (*solana.Transaction, error) { return Versioned(payer, compute, hash, nil, memo) }, "d5186b40be41a36b"},
		"v0 of an instruction": {func() (*solana.Transaction, error) {
			return Versioned(payer, compute, hash, []LookupTable{table}, memo)
		}, "a8ab0ee27b74b9bd"},
	}
	for name, test := range tests {
		tx, err := test.build()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if sum := sha256.Sum256(encode(t, tx)); hex.EncodeToString(sum[:8]) != test.want {
			t.Errorf("%s: the bytes have the hash %x, want %s", name, sum[:8], test.want)
		}
	}
}

func TestV1HasItsBudgetInTheHeader(t *testing.T) {
	t.Parallel()
	pool, payer := solPool(t), solana.PublicKey{9}
	call, compute := formatCall(V1)
	table := &LookupTable{Address: solana.PublicKey{6}, Addresses: pool.Constant()}
	tx, err := pool.Transaction(payer, call, compute, solana.Hash{7}, table)
	if err != nil {
		t.Fatal(err)
	}
	raw := encode(t, tx)
	read, err := solana.TransactionFromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Sanitize(); err != nil {
		t.Errorf("the network would refuse the transaction: %v", err)
	}
	// The total is what the two instructions of the older formats would cost.
	fee, units, loaded := compute.PriorityFee(), compute.Limit, compute.LoadedData
	if fee != 2001 {
		t.Errorf("the priority fee is %d, want 2001", fee)
	}
	want := solana.TransactionConfig{PriorityFee: &fee, ComputeUnitLimit: &units, LoadedAccountsDataSizeLimit: &loaded}
	if diff := cmp.Diff(want, read.Message.TransactionConfig); diff != "" {
		t.Errorf("budget (-want +got)\n%s", diff)
	}
	if n := len(read.Message.Instructions); n != 1 {
		t.Fatalf("the transaction has %d instructions, want the pool's alone", n)
	}
	program, err := read.Message.Program(read.Message.Instructions[V1.PoolInstruction()].ProgramIDIndex)
	if err != nil || !program.Equals(pool.Profile.ProgramID) {
		t.Errorf("instruction %d calls %s (%v), want the pool's program", V1.PoolInstruction(), program, err)
	}
	if free := (Compute{Format: V1}); free.PriorityFee() == 0 {
		tx, err := pool.Transaction(payer, call, free, solana.Hash{7}, nil)
		if err != nil || len(encode(t, tx)) != len(raw) {
			t.Errorf("a transaction without a priority fee has another length (%v)", err)
		}
	}
}

func TestPositionAndSizeFollowTheFormat(t *testing.T) {
	t.Parallel()
	pool, payer := solPool(t), solana.PublicKey{9}
	for _, test := range []struct {
		format   Format
		table    *LookupTable
		position int
		size     int
	}{
		{Legacy, nil, 2, 1232},
		{V0, &LookupTable{Address: solana.PublicKey{6}, Addresses: pool.Constant()}, 2, 1232},
		{V1, nil, 0, 4096},
	} {
		call, compute := formatCall(test.format)
		tx, err := pool.Transaction(payer, call, compute, solana.Hash{}, test.table)
		if err != nil {
			t.Fatal(err)
		}
		if got := FormatOf(encode(t, tx)); got != test.format {
			t.Errorf("a transaction of the format %s is taken for %s", test.format, got)
		}
		if got := test.format.PoolInstruction(); got != test.position || len(tx.Message.Instructions) != got+1 {
			t.Errorf("%s: the pool's instruction is %d of %d, want %d, the last", test.format, got, len(tx.Message.Instructions), test.position)
		}
		if got := test.format.MaxSize(); got != test.size {
			t.Errorf("%s: the largest transaction has %d bytes, want %d", test.format, got, test.size)
		}
		e := &TransactionError{Kind: "InstructionError", Instruction: test.position, Detail: "Custom", Custom: CodeDoubleSpend}
		if got := pool.Profile.ClassOfTransaction(e, test.format.PoolInstruction()); got != ClassSpent {
			t.Errorf("%s: DoubleSpend at instruction %d is %s, want %s", test.format, test.position, got, ClassSpent)
		}
	}
	if got := FormatOf(nil); got != Legacy {
		t.Errorf("no bytes are %s", got)
	}
}

// TestFormatOfTheVectors reads transactions that @solana/kit made.
func TestFormatOfTheVectors(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../rpc/testdata/transactions_v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Name    string
			WireHex string `json:"wire_hex"`
		}
	}
	if err := json.Unmarshal(content, &file); err != nil || len(file.Vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(file.Vectors), err)
	}
	for _, v := range file.Vectors {
		raw, err := hex.DecodeString(v.WireHex)
		if err != nil {
			t.Fatal(err)
		}
		if got := FormatOf(raw); got != V1 || len(raw) > got.MaxSize() {
			t.Errorf("%s is taken for %s with %d bytes", v.Name, got, len(raw))
		}
	}
}

func TestNoteBoundsOfFormats(t *testing.T) {
	t.Parallel()
	pool := solPool(t)
	legacy, err := pool.NoteBounds(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := NoteBounds{
		Legacy: {KindTransfer: 289, KindWithdrawal: 257, KindSwap: 185},
		V1:     {KindTransfer: 3185, KindWithdrawal: 3153, KindSwap: 3081},
	}
	if diff := cmp.Diff(want, legacy); diff != "" {
		t.Errorf("without a lookup table (-want +got)\n%s", diff)
	}
	for name, test := range map[string]struct {
		formats []Format
		want    int
	}{
		"before the network takes v1": {[]Format{Legacy}, 257},
		"legacy, and v1 where needed": {[]Format{Legacy, V1}, 3153},
		"v1 alone":                    {[]Format{V1}, 3153},
	} {
		if got := legacy.Of(test.formats).Largest(KindWithdrawal); got != test.want {
			t.Errorf("%s: a withdrawal may have %d bytes of notes, want %d", name, got, test.want)
		}
	}
	table, err := pool.NoteBounds(&LookupTable{Address: solana.PublicKey{6}, Addresses: pool.Constant()})
	if err != nil || table[V0][KindWithdrawal] != 345 || table[Legacy] != nil {
		t.Errorf("with a lookup table the bounds are %v, %v", table, err)
	}
}
