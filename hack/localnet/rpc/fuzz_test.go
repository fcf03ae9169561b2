package rpc_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/rpc"
)

func newServer(t testing.TB) *rpc.Endpoint {
	t.Helper()
	genesis := sha256.Sum256([]byte("test"))
	b, err := bank.New(bank.Options{
		Genesis: genesis, ConfirmAfter: 1, FinalizeAfter: 2, History: 200,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: []bank.Program{bank.SystemProgram(), bank.ComputeBudgetProgram()},
		Faucet:   solana.PublicKey{1}, FaucetLamports: 1 << 40,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Advance(5)
	server, err := rpc.New(rpc.Options{
		Bank: b, Genesis: genesis, Log: slog.New(slog.DiscardHandler),
		Airdrop: func(solana.PublicKey, uint64) (solana.Signature, error) {
			return solana.Signature{}, errors.New("no faucet here")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func TestNewRefusesMissingOptions(t *testing.T) {
	t.Parallel()
	if _, err := rpc.New(rpc.Options{}); err == nil {
		t.Error("got a server without a bank, want an error")
	}
}

// FuzzServeHTTP sends any body and requires that a successful answer is JSON.
func FuzzServeHTTP(f *testing.F) {
	for _, method := range []string{
		"getAccountInfo", "getMultipleAccounts", "getSignatureStatuses", "getSignaturesForAddress", "getTransaction",
		"getBlock", "getBlocks", "sendTransaction", "simulateTransaction", "requestAirdrop",
	} {
		f.Add(`[{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":["11111111111111111111111111111111",{"encoding":"base64","limit":1}]}]`)
		f.Add(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":[3,null,{"commitment":"confirmed","dataSlice":{"offset":1,"length":2}}]}`)
	}
	server := newServer(f)
	f.Fuzz(func(t *testing.T, body string) {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, request)
		if answer := recorder.Body.Bytes(); recorder.Code == http.StatusOK && len(answer) > 0 && !json.Valid(answer) {
			t.Errorf("the answer is no JSON: %q", answer)
		}
	})
}
