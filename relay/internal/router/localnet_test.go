package router

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	local "github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// localRouter makes the local chain's router, with a market for usdc, and serves it at a
// URL to requests with this API key.
func localRouter(t *testing.T, key string) (*local.Router, *market.Market, string) {
	t.Helper()
	usdcMarket, err := market.For(usdc)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := bank.New(bank.Options{
		Genesis: solana.Hash{1}, ConfirmAfter: 1, FinalizeAfter: 2, History: 300, Clock: time.Now,
		Faucet: solana.PublicKey{1}, FaucetLamports: 1,
		Accounts: usdcMarket.Genesis(solana.PublicKey{2}, market.Reserves{Lamports: 1e12, Tokens: 1e12}, 30, 1e12),
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := local.New(local.Options{Ledger: chain, Log: slog.New(slog.DiscardHandler), Table: table})
	if err != nil {
		t.Fatal(err)
	}
	return r, usdcMarket, serve(t, func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("X-Api-Key") != key {
			http.Error(w, "unknown API key", http.StatusUnauthorized)
			return
		}
		r.ServeHTTP(w, request)
	}).URL
}

func TestClientWithLocalRouter(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"v1 of the API": "", "v2 of the API": "/v2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testClientWithLocalRouter(t, path)
		})
	}
}

func testClientWithLocalRouter(t *testing.T, path string) {
	t.Helper()
	_, usdcMarket, url := localRouter(t, "k-123")
	url += path
	c := newClient(t, Options{BaseURL: url, APIKey: "k-123"})
	q, err := c.Quote(t.Context(), quoteRequest)
	if err != nil {
		t.Fatal(err)
	}
	// 0.1 SOL less 0.3 % into 1000 SOL at par, and 1 % of slippage.
	if q.InAmount != 100_000_000 || q.OutAmount != 99_690_060 || q.Threshold != 98_693_160 {
		t.Errorf("input %d gives output %d with threshold %d, want 99690060 and 98693160", q.InAmount, q.OutAmount, q.Threshold)
	}
	i, err := c.Instructions(t.Context(), q, user)
	if err != nil {
		t.Fatal(err)
	}
	if i.Program != market.ProgramID || len(i.Accounts) != 7 || i.Accounts[0].PublicKey != usdcMarket.Address || !i.Accounts[1].IsSigner || len(i.Data) != 17 {
		t.Errorf("instruction is %+v, want the instruction of the market", i)
	}
	if diff := cmp.Diff([]solana.PublicKey{table}, i.LookupTables); diff != "" || i.Others != 1 {
		t.Errorf("%d other instructions, want 1; tables (-want +got):\n%s", i.Others, diff)
	}
	other := quoteRequest
	other.OutputMint = market.ProgramID
	if _, err := c.Quote(t.Context(), other); describe(err) != "no route TOKEN_NOT_TRADABLE" {
		t.Errorf("quote for a mint without a market: error %v, want no route TOKEN_NOT_TRADABLE", err)
	}
	if _, err := newClient(t, Options{BaseURL: url, APIKey: "another"}).Quote(t.Context(), quoteRequest); describe(err) != swap.FaultRejected {
		t.Errorf("quote with another key: error %v, want rejected", err)
	}
}

// TestFaultsOfTheLocalRouter: the client detects faults that the answer itself shows.
// Other faults pass: only a caller that knows the fee payer, the router's program and
// the chain can detect them.
func TestFaultsOfTheLocalRouter(t *testing.T) {
	t.Parallel()
	lie := func(l local.Lie) local.Settings { return local.Settings{Lies: []local.LieRule{{Lie: l}}} }
	payer := func(l local.Lie) local.Settings {
		return local.Settings{Lies: []local.LieRule{{Lie: l, Account: solana.PublicKey{9}}}}
	}
	status := func(n int, after time.Duration) local.Settings {
		return local.Settings{Faults: []fault.Rule{{Status: n, RetryAfter: after}}}
	}
	const passed = "ok"
	tests := map[string]struct {
		settings                local.Settings
		quote, instructionsKind string
	}{
		"another mint":                          {lie(local.WrongMint), "route_rejected output_mint", passed},
		"another amount":                        {lie(local.WrongAmount), "route_rejected amount", passed},
		"an account that signs":                 {payer(local.PayerAccount), passed, "route_rejected signer"},
		"an unknown signer":                     {lie(local.ExtraSigner), passed, "route_rejected signer"},
		"another user":                          {lie(local.OtherUser), passed, "route_rejected signer"},
		"a page of HTML":                        {lie(local.Garbage), swap.FaultBadResponse, swap.FaultBadResponse},
		"half of an answer":                     {lie(local.Truncated), swap.FaultConnection, swap.FaultConnection},
		"an answer of 16 MiB":                   {lie(local.Huge), swap.FaultBadResponse, swap.FaultBadResponse},
		"a wide route":                          {local.Settings{Wide: 256}, passed, "no route TOO_LARGE"},
		"429":                                   {status(429, 3*time.Second), swap.FaultRateLimited, swap.FaultRateLimited},
		"500":                                   {status(500, 0), swap.FaultServerError, swap.FaultServerError},
		"no answer":                             {local.Settings{Faults: []fault.Rule{{Hang: true}}}, swap.FaultTimeout, swap.FaultTimeout},
		"a cut connection":                      {local.Settings{Faults: []fault.Rule{{Cut: true}}}, swap.FaultConnection, swap.FaultConnection},
		"another program, which passes":         {lie(local.WrongProgram), passed, passed},
		"a writable payer, which passes":        {payer(local.PayerWritable), passed, passed},
		"less output than quoted, which passes": {lie(local.ShortOutput), passed, passed},
		"a table that does not exist, which passes": {lie(local.BogusTable), passed, passed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, url := localRouter(t, "")
			client := func() *Client {
				timeout := 30 * time.Second
				if test.quote == swap.FaultTimeout {
					timeout = 300 * time.Millisecond
				}
				return newClient(t, Options{BaseURL: url, Timeout: timeout})
			}
			honest, err := newClient(t, Options{BaseURL: url}).Quote(t.Context(), quoteRequest)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Set(test.settings); err != nil {
				t.Fatal(err)
			}
			q, err := client().Quote(t.Context(), quoteRequest)
			if describe(err) != test.quote {
				t.Errorf("quote: %v, want %s", err, test.quote)
			}
			if err != nil {
				q = honest
			}
			if _, err := client().Instructions(t.Context(), q, user); describe(err) != test.instructionsKind {
				t.Errorf("instructions: %v, want %s", err, test.instructionsKind)
			}
		})
	}
}
