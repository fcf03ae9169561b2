package app

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// noPreparation is a genesisGate.prepare that does nothing.
func noPreparation(context.Context) error { return nil }

// stubAccount returns the same account for every key; nil means that it does not exist.
type stubAccount struct {
	*onchain.Account
	err error
}

func (a stubAccount) CorroboratedAccount(context.Context, solana.PublicKey) (*onchain.Account, error) {
	return a.Account, a.err
}

// notDeactivated is the deactivation slot of an active lookup table.
const notDeactivated = ^uint64(0)

func tableAccount(deactivated uint64, keys ...solana.PublicKey) *onchain.Account {
	data := binary.LittleEndian.AppendUint32(nil, 1)
	data = append(binary.LittleEndian.AppendUint64(data, deactivated), make([]byte, 44)...)
	for _, k := range keys {
		data = append(data, k[:]...)
	}
	return &onchain.Account{Owner: solana.AddressLookupTableProgramID, Data: data}
}

func TestTheLookupTableIsReadAndChecked(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	must(t, err)
	other := solana.PublicKey{5}
	all := append(solana.PublicKeySlice{other}, pool.Constant()...)
	foreign := tableAccount(notDeactivated, all...)
	foreign.Owner = solana.SystemProgramID
	tests := map[string]struct {
		chain         stubAccount
		wantPermanent bool
		wantText      string
	}{
		"one with the pool's accounts":  {chain: stubAccount{Account: tableAccount(notDeactivated, all...)}},
		"one that does not exist":       {chain: stubAccount{}, wantPermanent: true, wantText: "does not exist"},
		"another program's account":     {chain: stubAccount{Account: foreign}, wantPermanent: true, wantText: "belongs to"},
		"one that is cut short":         {chain: stubAccount{Account: &onchain.Account{Owner: solana.AddressLookupTableProgramID, Data: []byte{1}}}, wantPermanent: true, wantText: "1 bytes"},
		"one that is being deactivated": {chain: stubAccount{Account: tableAccount(7, all...)}, wantPermanent: true, wantText: "deactivated"},
		"one that lacks the treasury":   {chain: stubAccount{Account: tableAccount(notDeactivated, pool.Address, pool.MerkleTree, solana.SystemProgramID)}, wantPermanent: true, wantText: pool.Treasury.String()},
		"a chain that does not answer":  {chain: stubAccount{err: onchain.ErrUnavailable}, wantText: "unavailable"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lookup := newLookupTable(solana.PublicKey{9}, pool)
			err := readLookupTable(t.Context(), tc.chain, lookup, pool)
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
			if errors.Is(err, errInvalidLookupTable) != tc.wantPermanent {
				t.Errorf("error %v is permanent: %v, want %v", err, !tc.wantPermanent, tc.wantPermanent)
			}
		})
	}
	if newLookupTable(solana.PublicKey{}, pool) != nil {
		t.Error("newLookupTable returns a table although none is configured")
	}
	must(t, readLookupTable(t.Context(), stubAccount{err: onchain.ErrUnavailable}, nil, pool))
}

// stubNodes are RPC nodes. The node whose host name is i returns account i.
type stubNodes []*onchain.Account

func (n stubNodes) RoundTrip(r *http.Request) (*http.Response, error) {
	var call struct{ Method string }
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(r.URL.Hostname())
	if err != nil {
		return nil, err
	}
	result := fmt.Sprintf("%q", localnet.GenesisHash)
	if call.Method == "getMultipleAccounts" {
		result = fmt.Sprintf(`{"context":{"slot":100},"value":[{"lamports":5,"owner":%q,"data":[%q,"base64"],"executable":false,"rentEpoch":0}]}`,
			n[i].Owner, base64.StdEncoding.EncodeToString(n[i].Data))
	}
	body := `{"jsonrpc":"2.0","id":1,"result":` + result + `}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// The process uses the table until it ends. With a wrong order of addresses every transaction
// would fail, and with a wrong state no relay would start.
func TestTheLookupTableNeedsCorroboration(t *testing.T) {
	t.Parallel()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	must(t, err)
	reversed := slices.Clone(pool.Constant())
	slices.Reverse(reversed)
	correct, permuted := tableAccount(notDeactivated, pool.Constant()...), tableAccount(notDeactivated, reversed...)
	foreign, deactivated := tableAccount(notDeactivated, pool.Constant()...), tableAccount(7, pool.Constant()...)
	foreign.Owner = solana.SystemProgramID
	tests := map[string]struct {
		nodes         stubNodes
		wantUsed      bool
		wantPermanent bool
	}{
		"the only endpoint has a good table":        {nodes: stubNodes{correct}, wantUsed: true},
		"the only endpoint has a deactivated table": {nodes: stubNodes{deactivated}, wantPermanent: true},
		"both report a good table":                  {nodes: stubNodes{correct, correct}, wantUsed: true},
		"both report a deactivated table":           {nodes: stubNodes{deactivated, deactivated}, wantPermanent: true},
		"one of two reports another owner":          {nodes: stubNodes{foreign, correct}},
		"one of two reports a deactivated table":    {nodes: stubNodes{deactivated, correct}},
		"one of two reports another order":          {nodes: stubNodes{permuted, correct}},
		"one of three reports another owner":        {nodes: stubNodes{foreign, correct, correct}, wantUsed: true},
		"one of three reports another order":        {nodes: stubNodes{permuted, correct, correct}, wantUsed: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := chain.EndpointsOptions{
				Genesis: localnet.GenesisHash, Now: time.Now, Rand: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
				HTTP: func() *http.Client { return &http.Client{Transport: tc.nodes} },
			}
			for i := range tc.nodes {
				o.Endpoints = append(o.Endpoints, chain.Endpoint{Name: fmt.Sprint(i), URL: fmt.Sprintf("http://%d", i), WebSocketURL: chain.NoWebSocket})
			}
			endpoints, err := chain.NewEndpoints(o)
			must(t, err)
			t.Cleanup(endpoints.Close)
			lookup := newLookupTable(solana.PublicKey{9}, pool)
			lookup.Addresses = nil
			err = readLookupTable(t.Context(), endpoints, lookup, pool)
			if (err == nil) != tc.wantUsed || errors.Is(err, errInvalidLookupTable) != tc.wantPermanent {
				t.Errorf("error is %v; want the table used: %v, a permanent error: %v", err, tc.wantUsed, tc.wantPermanent)
			}
			want := solana.PublicKeySlice(nil)
			if tc.wantUsed {
				want = pool.Constant()
			}
			if !slices.Equal(lookup.Addresses, want) {
				t.Errorf("the table has %v, want %v", lookup.Addresses, want)
			}
		})
	}
}
