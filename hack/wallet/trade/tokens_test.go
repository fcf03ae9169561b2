package trade_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func tokenAccount(amount uint64) []byte {
	data := make([]byte, shieldpool.TokenAccountLength)
	copy(data, usdc[:])
	copy(data[32:], buyer[:])
	binary.LittleEndian.PutUint64(data[64:], amount)
	data[108] = 1
	return data
}

func TestTokens(t *testing.T) {
	t.Parallel()
	account := func(owner solana.PublicKey, data []byte) string {
		return fmt.Sprintf(`{"context":{"slot":1},"value":{"data":[%q,"base64"],"executable":false,"lamports":2039280,"owner":%q,"rentEpoch":0,"space":%d}}`,
			base64.StdEncoding.EncodeToString(data), owner, len(data))
	}
	tests := map[string]struct {
		result    string
		amount    uint64
		exists    bool
		wantError string
	}{
		"an account with tokens":               {account(solana.TokenProgramID, tokenAccount(745_000)), 745_000, true, ""},
		"an empty account":                     {account(solana.TokenProgramID, tokenAccount(0)), 0, true, ""},
		"a missing account":                    {`{"context":{"slot":1},"value":null}`, 0, false, ""},
		"an account of another program":        {account(solana.SystemProgramID, nil), 0, false, "another program than SPL Token"},
		"a mint, which is not a token account": {account(solana.TokenProgramID, make([]byte, shieldpool.TokenMintLength)), 0, false, "82 bytes, expected 165"},
		"no answer":                            {"", 0, false, "read a token account"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var call struct {
					ID     json.RawMessage `json:"id"`
					Params []any           `json:"params"`
				}
				if err := json.NewDecoder(r.Body).Decode(&call); err != nil || len(call.Params) != 2 || call.Params[0] != buyer.String() {
					t.Errorf("got a request with %v, error %v; want the account and options", call.Params, err)
				}
				if tc.result == "" {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, tc.result)
			}))
			t.Cleanup(server.Close)
			amount, exists, err := trade.Tokens(t.Context(), rpc.New(server.URL), buyer, rpc.CommitmentConfirmed)
			if amount != tc.amount || exists != tc.exists {
				t.Errorf("got balance %d, exists %t; want %d, %t", amount, exists, tc.amount, tc.exists)
			}
			if tc.wantError == "" && err != nil || tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)) {
				t.Errorf("error %v, want one with %q", err, tc.wantError)
			}
		})
	}
}
