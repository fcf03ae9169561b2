package app

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// nothing is a preparation that does nothing.
func nothing(context.Context) error { return nil }

// account answers every reading with one account, which may be nil.
type account struct {
	*onchain.Account
	err error
}

func (a account) Accounts(context.Context, []solana.PublicKey, onchain.Commitment, uint64) ([]*onchain.Account, uint64, error) {
	return []*onchain.Account{a.Account}, 1, a.err
}

func TestTheLookupTableIsReadAndChecked(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	must(t, err)
	table := func(deactivated uint64, keys ...solana.PublicKey) *onchain.Account {
		data := binary.LittleEndian.AppendUint32(nil, 1)
		data = append(binary.LittleEndian.AppendUint64(data, deactivated), make([]byte, 44)...)
		for _, k := range keys {
			data = append(data, k[:]...)
		}
		return &onchain.Account{Owner: solana.AddressLookupTableProgramID, Data: data}
	}
	const active = ^uint64(0)
	other := solana.PublicKey{5}
	all := append(solana.PublicKeySlice{other}, pool.Constant()...)
	foreign := table(active, all...)
	foreign.Owner = solana.SystemProgramID
	tests := map[string]struct {
		chain     account
		wantFinal bool
		wantText  string
	}{
		"one with the pool's accounts":          {chain: account{Account: table(active, all...)}},
		"one that does not exist":               {chain: account{}, wantFinal: true, wantText: "does not exist"},
		"another program's account":             {chain: account{Account: foreign}, wantFinal: true, wantText: "belongs to"},
		"one that is cut short":                 {chain: account{Account: &onchain.Account{Owner: solana.AddressLookupTableProgramID, Data: []byte{1}}}, wantFinal: true, wantText: "1 bytes"},
		"one that is being deactivated":         {chain: account{Account: table(7, all...)}, wantFinal: true, wantText: "deactivated"},
		"one that lacks the treasury":           {chain: account{Account: table(active, pool.Address, pool.MerkleTree, solana.SystemProgramID)}, wantFinal: true, wantText: pool.Treasury.String()},
		"a chain that does not answer is no no": {chain: account{err: onchain.ErrUnavailable}, wantText: "unavailable"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lookup := newTable(solana.PublicKey{9}, pool)
			err := readTable(t.Context(), tc.chain, lookup, pool)
			if tc.wantText == "" {
				must(t, err)
				if len(lookup.Addresses) != len(all) || lookup.Addresses[0] != other {
					t.Errorf("the table has %v, want the chain's %v", lookup.Addresses, all)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantText) {
				t.Fatalf("error is %v, want %q in it", err, tc.wantText)
			}
			if errors.Is(err, errBadTable) != tc.wantFinal {
				t.Errorf("error %v is final: %v, want %v", err, !tc.wantFinal, tc.wantFinal)
			}
		})
	}
	if newTable(solana.PublicKey{}, pool) != nil {
		t.Error("there is a table although none is configured")
	}
	must(t, readTable(t.Context(), account{err: onchain.ErrUnavailable}, nil, pool))
}
