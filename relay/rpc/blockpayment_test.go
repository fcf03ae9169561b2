package rpc

import (
	"fmt"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestBlockShowsWhatTheFeePayerPaid(t *testing.T) {
	t.Parallel()
	tx, err := testTransaction()
	if err != nil {
		t.Fatal(err)
	}
	const balances = `"fee":5000,"preBalances":[9000,1,1,1,1],"postBalances":[4000,1,1,1,1],`
	paid := &onchain.Payment{
		Signature: sigA, Slot: 8, At: time.Unix(7, 0).UTC(), FeePayer: payerKey, Fee: 5000, SignatureFees: 5000, Before: 9000, After: 4000,
	}
	tests := map[string]struct {
		meta, before, after string // members of the block before and after its transactions
		want                *onchain.Payment
	}{
		"the time comes before the transactions":                   {meta: balances, before: `"blockTime":7,`, want: paid},
		"the time comes after them":                                {meta: balances, after: `,"blockTime":7`, want: paid},
		"a block without a time has no payments":                   {meta: balances},
		"a block whose time is null has none":                      {meta: balances, before: `"blockTime":null,`},
		"a block whose time is not an integer is read":             {meta: balances, before: `"blockTime":"7.5",`},
		"a transaction without a fee has no payment":               {meta: `"preBalances":[9000,1,1,1,1],"postBalances":[4000,1,1,1,1],`, before: `"blockTime":7,`},
		"a transaction without the balances of all has no payment": {meta: `"fee":5000,"preBalances":[9000],"postBalances":[4000],`, before: `"blockTime":7,`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, result(fmt.Sprintf(`{"blockhash":%q,"previousBlockhash":%q,"parentSlot":6,%s"transactions":[%s]%s}`,
				hashA, solana.Hash{2}, test.before, withMeta(tx, `{"err":null,`+test.meta+`"innerInstructions":[]}`), test.after)))
			b, err := newClient(t, Options{URL: n.URL}).Block(t.Context(), 8, treeKey)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.Transactions[0].Payment); diff != "" {
				t.Errorf("payment differs (-want +got):\n%s", diff)
			}
		})
	}
}
