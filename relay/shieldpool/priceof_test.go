package shieldpool

import (
	"testing"

	"github.com/gagliardetto/solana-go"
)

func TestThePriceOfATransactionIsReadFromItsBytes(t *testing.T) {
	t.Parallel()
	pool, err := Development().Pool(Development().Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	call := &Call{Proof: make([]byte, ProofLength), Inputs: &PublicInputs{PublicAmount: -1, Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}}
	call.Recipient = solana.PublicKey{1, 2}
	for name, format := range map[string]Format{"before version 1": Legacy, "version 1": V1} {
		for _, price := range []uint64{0, 1000, 12_345, 1_000_000_000} {
			tx, err := pool.Transaction(solana.PublicKey{9}, call, Compute{Format: format, Limit: 310_000, Price: price, LoadedData: 1 << 16}, solana.Hash{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tx.Signatures = make([]solana.Signature, 1)
			raw, err := tx.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			// The header of version 1 has the fee in whole lamports, so its price is rounded up.
			if got := PriceOf(raw); got < price || got > price+4 {
				t.Errorf("%s: got price %d, want %d", name, got, price)
			}
		}
	}
	if got := PriceOf([]byte{1, 2, 3}); got != 0 {
		t.Errorf("bytes that are no transaction have price %d, want 0", got)
	}
}
