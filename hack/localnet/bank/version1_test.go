package bank_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// TestTransactionsOfVersion1FollowTheVectors decodes transactions that @solana/kit and the Rust
// SDK made, and refuses malformed ones.
func TestTransactionsOfVersion1FollowTheVectors(t *testing.T) {
	t.Parallel()
	type vector struct {
		Name    string
		TxID    string
		WireHex string `json:"wire_hex"`
	}
	raw, err := os.ReadFile("../../../relay/rpc/testdata/transactions_v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct{ Vectors, Negative []vector }
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Vectors) != 8 || len(vectors.Negative) != 12 {
		t.Fatalf("the file has %d and %d vectors, want 8 and 12", len(vectors.Vectors), len(vectors.Negative))
	}
	wire := func(v vector) []byte {
		out, err := hex.DecodeString(v.WireHex)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, v := range vectors.Vectors {
		tx, err := bank.DecodeTransaction(wire(v))
		if err != nil {
			t.Errorf("%s: %v, want it decoded", v.Name, err)
			continue
		}
		if got := tx.Signature().String(); got != v.TxID || !tx.VerifySignatures() {
			t.Errorf("%s: the signature is %s and verifies: %v; want %s", v.Name, got, tx.VerifySignatures(), v.TxID)
		}
	}
	for _, v := range vectors.Negative {
		if _, err := bank.DecodeTransaction(wire(v)); err == nil {
			t.Errorf("%s is decoded, want an error", v.Name)
		}
	}
}
