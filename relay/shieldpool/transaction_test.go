package shieldpool_test

import (
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestALookupTableShortensAVersionedTransaction(t *testing.T) {
	t.Parallel()
	swap := testSwap(t)
	payer := solana.PublicKey{3}
	instructions := swap.CreateAccounts(payer, solana.PublicKey{4})
	size := func(tables ...shieldpool.LookupTable) int {
		tx, err := shieldpool.Versioned(payer, shieldpool.Compute{Limit: 1}, solana.Hash{}, tables, instructions...)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if raw[65] != 0x80 {
			t.Errorf("the message begins with %#x, want 0x80, version 0", raw[65])
		}
		back, err := solana.TransactionFromBytes(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(back.Message.AddressTableLookups); got != len(tables) {
			t.Errorf("%d lookups, want %d", got, len(tables))
		}
		return len(raw)
	}
	// The table also contains the payer and a called program: both must stay in the message.
	table := shieldpool.LookupTable{Address: solana.PublicKey{8}, Addresses: solana.PublicKeySlice{
		payer, solana.SPLAssociatedTokenAccountProgramID, solana.TokenProgramID, solana.SystemProgramID, swap.State,
	}}
	without, with := size(), size(table)
	if want := 3*31 - 34; without-with != want {
		t.Errorf("the table saves %d bytes, want %d: three addresses at 31, less 34 for the table", without-with, want)
	}
}
