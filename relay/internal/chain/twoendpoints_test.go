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

func TestCorroboratedAccountNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	account := func(owner solana.PublicKey, lamports int, data string) reply {
		return resultReply(fmt.Sprintf(`{"context":{"slot":100},"value":[{"lamports":%d,"owner":%q,"data":[%q,"base64"],"executable":false,"rentEpoch":0}]}`,
			lamports, owner, base64.StdEncoding.EncodeToString([]byte(data))))
	}
	table := solana.AddressLookupTableProgramID
	honest, richer, missing := account(table, 5, "table"), account(table, 6, "table"), resultReply(`{"context":{"slot":100},"value":[null]}`)
	otherOwner, otherData := account(solana.SystemProgramID, 5, "table"), account(table, 5, "tabel")
	tests := map[string]struct {
		answers  []reply
		want     string // the data; "" for no account
		wantKind string
	}{
		"a single endpoint is believed":              {answers: []reply{honest}, want: "table"},
		"two report it":                              {answers: []reply{honest, honest}, want: "table"},
		"the lamports differ":                        {answers: []reply{honest, richer}, want: "table"},
		"one of two reports other data":              {answers: []reply{otherData, honest}, wantKind: onchain.KindUnverified},
		"one of two reports another owner":           {answers: []reply{otherOwner, honest}, wantKind: onchain.KindUnverified},
		"one of two does not have it":                {answers: []reply{missing, honest}, wantKind: onchain.KindUnverified},
		"the other of two does not have it":          {answers: []reply{honest, missing}, wantKind: onchain.KindUnverified},
		"neither of two has it":                      {answers: []reply{missing, missing}},
		"the other is down":                          {answers: []reply{honest, serverError}, wantKind: onchain.KindUnverified},
		"the first of three lies":                    {answers: []reply{otherData, honest, honest}, want: "table"},
		"the first of three lies about the owner":    {answers: []reply{otherOwner, honest, honest}, want: "table"},
		"the second of three lies":                   {answers: []reply{honest, otherData, honest}, want: "table"},
		"three that disagree report nothing usable":  {answers: []reply{honest, otherData, otherOwner}, wantKind: onchain.KindUnverified},
		"the first of three is down, two report it":  {answers: []reply{serverError, honest, honest}, want: "table"},
		"the second of three is down, two report it": {answers: []reply{honest, serverError, honest}, want: "table"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"a", "b", "c"}[:len(test.answers)]
				n := newNetwork(names...)
				for i, name := range names {
					n[name].set("getMultipleAccounts", test.answers[i])
				}
				e, _ := newEndpoints(t, n, endpointsNamed(names...), nil)
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

func TestHighestBalances(t *testing.T) {
	t.Parallel()
	balances := func(slot int, first, second string) reply {
		return resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":[%s,%s]}`, slot, first, second))
	}
	account := func(lamports int) string {
		return fmt.Sprintf(`{"lamports":%d,"owner":%q,"data":["","base64"],"executable":false,"rentEpoch":0}`, lamports, solana.SystemProgramID)
	}
	tests := map[string]struct {
		answers  []reply
		want     []uint64
		wantSlot uint64
		wantKind string
	}{
		"a single endpoint":                            {answers: []reply{balances(100, account(5), "null")}, want: []uint64{5, 0}, wantSlot: 100},
		"the first reports one lamport":                {answers: []reply{balances(101, account(1), account(1)), balances(100, account(5), account(7))}, want: []uint64{5, 7}, wantSlot: 100},
		"the second reports nothing":                   {answers: []reply{balances(100, account(5), account(7)), balances(101, "null", "null")}, want: []uint64{5, 7}, wantSlot: 100},
		"each reports the higher value of one account": {answers: []reply{balances(100, account(5), account(1)), balances(100, account(1), account(7))}, want: []uint64{5, 7}, wantSlot: 100},
		"the second is down":                           {answers: []reply{balances(100, account(5), "null"), serverError}, want: []uint64{5, 0}, wantSlot: 100},
		"the second of three is down":                  {answers: []reply{balances(100, account(1), "null"), serverError, balances(99, account(5), account(7))}, want: []uint64{5, 7}, wantSlot: 99},
		"the first is down":                            {answers: []reply{serverError, balances(99, account(5), account(7))}, want: []uint64{5, 7}, wantSlot: 99},
		"both are down":                                {answers: []reply{serverError, serverError}, wantKind: onchain.KindServerError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"a", "b", "c"}[:len(test.answers)]
				n := newNetwork(names...)
				for i, name := range names {
					n[name].set("getMultipleAccounts", test.answers[i])
				}
				e, _ := newEndpoints(t, n, endpointsNamed(names...), nil)
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
