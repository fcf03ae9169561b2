package chain

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestAnAccountCountsOnceTwoEndpointsReportIt(t *testing.T) {
	t.Parallel()
	holds := func(owner solana.PublicKey, lamports int, data string) reply {
		return says(fmt.Sprintf(`{"context":{"slot":100},"value":[{"lamports":%d,"owner":%q,"data":[%q,"base64"],"executable":false,"rentEpoch":0}]}`,
			lamports, owner, base64.StdEncoding.EncodeToString([]byte(data))))
	}
	table := solana.AddressLookupTableProgramID
	honest, richer, nothing := holds(table, 5, "table"), holds(table, 6, "table"), says(`{"context":{"slot":100},"value":[null]}`)
	foreign, permuted := holds(solana.SystemProgramID, 5, "table"), holds(table, 5, "tabel")
	tests := map[string]struct {
		say      []reply
		want     string // the data; "" for no account
		wantKind string
	}{
		"a single endpoint is believed":              {say: []reply{honest}, want: "table"},
		"two report it":                              {say: []reply{honest, honest}, want: "table"},
		"lamports may differ":                        {say: []reply{honest, richer}, want: "table"},
		"one of two reports other data":              {say: []reply{permuted, honest}, wantKind: onchain.KindUnverified},
		"one of two reports another owner":           {say: []reply{foreign, honest}, wantKind: onchain.KindUnverified},
		"one of two does not have it":                {say: []reply{nothing, honest}, wantKind: onchain.KindUnverified},
		"the other of two does not have it":          {say: []reply{honest, nothing}, wantKind: onchain.KindUnverified},
		"neither of two has it":                      {say: []reply{nothing, nothing}},
		"the other is down":                          {say: []reply{honest, sick}, wantKind: onchain.KindUnverified},
		"the first of three lies":                    {say: []reply{permuted, honest, honest}, want: "table"},
		"the first of three lies about the owner":    {say: []reply{foreign, honest, honest}, want: "table"},
		"the second of three lies":                   {say: []reply{honest, permuted, honest}, want: "table"},
		"three that disagree report nothing usable":  {say: []reply{honest, permuted, foreign}, wantKind: onchain.KindUnverified},
		"the first of three is down, two report it":  {say: []reply{sick, honest, honest}, want: "table"},
		"the second of three is down, two report it": {say: []reply{honest, sick, honest}, want: "table"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"a", "b", "c"}[:len(test.say)]
				n := newNetwork(names...)
				for i, name := range names {
					n[name].set("getMultipleAccounts", test.say[i])
				}
				e, _ := newEndpoints(t, n, of(names...), nil)
				got, err := e.CorroboratedAccount(t.Context(), keyA)
				if test.wantKind != "" {
					checkError(t, err, test.wantKind, 0, nil)
					return
				}
				if err != nil || (got != nil) != (test.want != "") || got != nil && string(got.Data) != test.want {
					t.Errorf("the account is %+v with error %v, want %q", got, err, test.want)
				}
			})
		})
	}
}

func TestOneEndpointMakesNoPayerEmpty(t *testing.T) {
	t.Parallel()
	holds := func(slot int, first, second string) reply {
		return says(fmt.Sprintf(`{"context":{"slot":%d},"value":[%s,%s]}`, slot, first, second))
	}
	has := func(lamports int) string {
		return fmt.Sprintf(`{"lamports":%d,"owner":%q,"data":["","base64"],"executable":false,"rentEpoch":0}`, lamports, solana.SystemProgramID)
	}
	tests := map[string]struct {
		say      []reply
		want     []uint64
		wantSlot uint64
		wantKind string
	}{
		"a single endpoint":                     {say: []reply{holds(100, has(5), "null")}, want: []uint64{5, 0}, wantSlot: 100},
		"the first reports one lamport":         {say: []reply{holds(101, has(1), has(1)), holds(100, has(5), has(7))}, want: []uint64{5, 7}, wantSlot: 100},
		"the second reports nothing":            {say: []reply{holds(100, has(5), has(7)), holds(101, "null", "null")}, want: []uint64{5, 7}, wantSlot: 100},
		"each has the higher value of one":      {say: []reply{holds(100, has(5), has(1)), holds(100, has(1), has(7))}, want: []uint64{5, 7}, wantSlot: 100},
		"the second is down":                    {say: []reply{holds(100, has(5), "null"), sick}, want: []uint64{5, 0}, wantSlot: 100},
		"the second of three is down":           {say: []reply{holds(100, has(1), "null"), sick, holds(99, has(5), has(7))}, want: []uint64{5, 7}, wantSlot: 99},
		"the first is down and the second left": {say: []reply{sick, holds(99, has(5), has(7))}, want: []uint64{5, 7}, wantSlot: 99},
		"both are down":                         {say: []reply{sick, sick}, wantKind: onchain.KindServerError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"a", "b", "c"}[:len(test.say)]
				n := newNetwork(names...)
				for i, name := range names {
					n[name].set("getMultipleAccounts", test.say[i])
				}
				e, _ := newEndpoints(t, n, of(names...), nil)
				got, slot, err := e.HighestBalances(t.Context(), []solana.PublicKey{keyA, {2}})
				if test.wantKind != "" {
					checkError(t, err, test.wantKind, 0, nil)
					return
				}
				if err != nil || !slices.Equal(got, test.want) || slot != test.wantSlot {
					t.Errorf("balances are %v at slot %d with error %v, want %v at %d", got, slot, err, test.want, test.wantSlot)
				}
			})
		})
	}
}
