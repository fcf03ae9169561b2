package router_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/router"
)

const sol = solana.LAMPORTS_PER_SOL

var reserves = market.Reserves{Lamports: 10_000 * sol, Tokens: 1_500_000_000_000}

func address(name string) solana.PublicKey {
	seed := sha256.Sum256([]byte(name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:])).PublicKey()
}

// world is a router over a chain with one market, behind a server.
type world struct {
	*router.Router
	t      testing.TB
	market *market.Market
	url    string
}

func newWorld(t testing.TB, change func(*router.Options)) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	if w.market, err = market.For(address("usd")); err != nil {
		t.Fatal(err)
	}
	chain, err := bank.New(bank.Options{
		Genesis: sha256.Sum256([]byte("test")), ConfirmAfter: 1, FinalizeAfter: 32, History: 1000,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: []bank.Program{bank.SystemProgram(), market.Program()},
		Accounts: w.market.Genesis(address("admin"), reserves, 30, reserves.Tokens),
		Faucet:   address("admin"), FaucetLamports: sol,
	})
	if err != nil {
		t.Fatal(err)
	}
	opts := router.Options{Ledger: chain, Log: slog.New(slog.DiscardHandler), Table: address("table"), Seed: 1}
	if change != nil {
		change(&opts)
	}
	if w.Router, err = router.New(opts); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Router)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) set(s router.Settings) {
	w.t.Helper()
	if err := w.Set(s); err != nil {
		w.t.Fatal(err)
	}
}

// quoteParams are the parameters of a relay's GET /quote. more are pairs of a name and
// a value.
func quoteParams(more ...string) url.Values {
	q := url.Values{
		"inputMint": {solana.WrappedSol.String()}, "outputMint": {address("usd").String()}, "amount": {"1000000000"},
		"slippageBps": {"100"}, "restrictIntermediateTokens": {"true"},
	}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return q
}

// call makes a request and returns the answer's status and body.
func (w *world) call(method, path string, body io.Reader) (int, []byte) {
	w.t.Helper()
	status, raw, err := w.request(w.t.Context(), method, path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return status, raw
}

func (w *world) request(ctx context.Context, method, path string, body io.Reader) (int, []byte, error) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, w.url+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, raw, err
}

// quote asks for a quote, which must succeed.
func (w *world) quote(more ...string) map[string]any {
	w.t.Helper()
	status, raw := w.call(http.MethodGet, "/quote?"+quoteParams(more...).Encode(), nil)
	if status != http.StatusOK {
		w.t.Fatalf("got status %d and %s, want a quote", status, raw)
	}
	return object(w.t, raw)
}

func object(t testing.TB, raw []byte) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("the answer is no JSON object: %v", err)
	}
	return out
}

// answer has the fields that a client reads from the answer of POST /swap-instructions.
type answer struct {
	Swap   wire     `json:"swapInstruction"`
	Setup  []wire   `json:"setupInstructions"`
	Tables []string `json:"addressLookupTableAddresses"`
}

type wire struct {
	ProgramID string `json:"programId"`
	Accounts  []struct {
		Pubkey     string `json:"pubkey"`
		IsSigner   bool   `json:"isSigner"`
		IsWritable bool   `json:"isWritable"`
	} `json:"accounts"`
	Data string `json:"data"`
}

// flags writes each account as its address and its flags: s for signer, w for writable.
func (i wire) flags() (out []string) {
	for _, a := range i.Accounts {
		s := a.Pubkey
		if a.IsSigner {
			s += " s"
		}
		if a.IsWritable {
			s += " w"
		}
		out = append(out, s)
	}
	return out
}

func body(t testing.TB, quote map[string]any, more map[string]any) io.Reader {
	t.Helper()
	members := map[string]any{"quoteResponse": quote, "userPublicKey": address("user").String(), "wrapAndUnwrapSol": false}
	maps.Copy(members, more)
	raw, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(raw)
}

// instructions asks for the instructions of a quote, which must succeed.
func (w *world) instructions(quote map[string]any, more map[string]any) *answer {
	w.t.Helper()
	status, raw := w.call(http.MethodPost, "/swap-instructions", body(w.t, quote, more))
	if status != http.StatusOK {
		w.t.Fatalf("got status %d and %s, want instructions", status, raw)
	}
	var out answer
	if err := json.Unmarshal(raw, &out); err != nil {
		w.t.Fatal(err)
	}
	return &out
}

// trueSwap is the instruction in a true answer.
func (w *world) trueSwap(in, minimum uint64) *solana.GenericInstruction {
	w.t.Helper()
	user := address("user")
	trade := market.Trade{User: user, AmountIn: in, MinOut: minimum}
	trade.WSOL, _, _ = solana.FindAssociatedTokenAddress(user, solana.WrappedSol)
	trade.Tokens, _, _ = solana.FindAssociatedTokenAddress(user, address("usd"))
	return w.market.Swap(trade)
}

func encoded(ix *solana.GenericInstruction) wire {
	out := wire{ProgramID: ix.ProgID.String(), Data: base64.StdEncoding.EncodeToString(ix.DataBytes)}
	for _, m := range ix.AccountValues {
		out.Accounts = append(out.Accounts, struct {
			Pubkey     string `json:"pubkey"`
			IsSigner   bool   `json:"isSigner"`
			IsWritable bool   `json:"isWritable"`
		}{m.PublicKey.String(), m.IsSigner, m.IsWritable})
	}
	return out
}

func TestNewRefusesMissingOptions(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]router.Options{
		"no ledger": {Log: slog.New(slog.DiscardHandler)},
		"no log":    {Ledger: new(bank.Bank)},
	} {
		if _, err := router.New(opts); err == nil {
			t.Errorf("%s: got a router, want an error", name)
		}
	}
}

func TestAQuoteMatchesTheMarket(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	// The output is 150 tokens a SOL, minus the fee of 30 basis points and the price impact.
	const out, minimum = 149_535_091, 148_039_741
	market, mint, wsol := w.market.Address.String(), address("usd").String(), solana.WrappedSol.String()
	want := map[string]any{
		"inputMint": wsol, "inAmount": "1000000000", "outputMint": mint,
		"outAmount": strconv.Itoa(out), "otherAmountThreshold": strconv.Itoa(minimum), "swapMode": "ExactIn", "slippageBps": 100.0,
		"platformFee": nil, "contextSlot": 1.0, "timeTaken": 0.001,
		"routePlan": []any{map[string]any{"percent": 100.0, "swapInfo": map[string]any{
			"ammKey": market, "label": "Local market", "inputMint": wsol, "outputMint": mint, "inAmount": "1000000000",
			"outAmount": strconv.Itoa(out), "feeAmount": "3000000", "feeMint": wsol,
		}}},
	}
	got := w.quote()
	if impact, err := strconv.ParseFloat(got["priceImpactPct"].(string), 64); err != nil || impact < 0.00009 || impact > 0.0001 {
		t.Errorf("the price impact is %v, want a decimal of about 0.0001", got["priceImpactPct"])
	}
	delete(got, "priceImpactPct")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThresholdIsOutputMinusSlippageRoundedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, bps := range []int64{0, 1, 50, 333, 9_999, 10_000} {
		q := w.quote("slippageBps", strconv.FormatInt(bps, 10), "amount", "123456789")
		out, _ := new(big.Int).SetString(q["outAmount"].(string), 10)
		slippage := new(big.Int).Mul(out, big.NewInt(bps))
		want := new(big.Int).Sub(out, slippage.Div(slippage, big.NewInt(10_000)))
		if got := q["otherAmountThreshold"]; got != want.String() {
			t.Errorf("output %s at %d basis points: the threshold is %s, want %s", out, bps, got, want)
		}
	}
	q := quoteParams()
	q.Del("slippageBps")
	_, raw := w.call(http.MethodGet, "/quote?"+q.Encode(), nil)
	if got := object(t, raw)["slippageBps"]; got != 50.0 {
		t.Errorf("the default of slippageBps is %v, want 50", got)
	}
}

func TestQuotesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, test := range map[string]struct {
		parameter, value string
		wantCode, want   string
	}{
		"an output mint without a market":      {"outputMint", address("other").String(), "TOKEN_NOT_TRADABLE", "not tradable"},
		"another input than wrapped SOL":       {"inputMint", address("other").String(), "TOKEN_NOT_TRADABLE", "not tradable"},
		"the same mint on both sides":          {"outputMint", solana.WrappedSol.String(), "CIRCULAR_ARBITRAGE_IS_DISABLED", "arbitrage"},
		"an output mint that is no address":    {"outputMint", "usd", "", "outputMint cannot be parsed"},
		"no input mint":                        {"inputMint", "", "", "inputMint cannot be parsed"},
		"an amount that is no number":          {"amount", "1.5", "", "amount cannot be parsed"},
		"a negative amount":                    {"amount", "-1", "", "amount cannot be parsed"},
		"no amount":                            {"amount", "", "", "amount cannot be parsed"},
		"an amount beyond 64 bits":             {"amount", "18446744073709551616", "", "amount cannot be parsed"},
		"an amount that overflows the reserve": {"amount", "18446744073709551615", "COULD_NOT_FIND_ANY_ROUTE", "route"},
		"an amount that buys nothing":          {"amount", "1", "COULD_NOT_FIND_ANY_ROUTE", "route"},
		"an amount of 0":                       {"amount", "0", "COULD_NOT_FIND_ANY_ROUTE", "route"},
		"a slippage above 100 %":               {"slippageBps", "10001", "", "slippageBps cannot be parsed"},
		"fewer accounts than a trade has":      {"maxAccounts", "6", "COULD_NOT_FIND_ANY_ROUTE", "route"},
		"ExactOut":                             {"swapMode", "ExactOut", "", "swapMode cannot be parsed"},
	} {
		status, raw := w.call(http.MethodGet, "/quote?"+quoteParams(test.parameter, test.value).Encode(), nil)
		var got struct{ Error, ErrorCode string }
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		if status != http.StatusBadRequest || got.ErrorCode != test.wantCode || !strings.Contains(got.Error, test.want) {
			t.Errorf("%s: got status %d, code %q and %q, want 400, %q and %q in it", name, status, got.ErrorCode, got.Error, test.wantCode, test.want)
		}
	}
	if got := w.Stats().Refused["TOKEN_NOT_TRADABLE"]; got != 2 {
		t.Errorf("%d refusals of mints were counted, want 2", got)
	}
}

func TestInstructionsMatchTheQuote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	got := w.instructions(w.quote(), nil)
	if diff := cmp.Diff(encoded(w.trueSwap(sol, 148_039_741)), got.Swap); diff != "" {
		t.Errorf("swapInstruction (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{address("table").String()}, got.Tables); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	if len(got.Setup) != 1 || got.Setup[0].ProgramID != solana.SPLAssociatedTokenAccountProgramID.String() {
		t.Errorf("setupInstructions are %+v, want one that creates the user's token account", got.Setup)
	}
	elsewhere := w.instructions(w.quote(), map[string]any{"destinationTokenAccount": address("elsewhere").String()})
	if got := elsewhere.Swap.flags()[3]; got != address("elsewhere").String()+" w" || len(elsewhere.Setup) != 0 {
		t.Errorf("with a destination the output goes to %s, with %d setup instructions; want the destination and none", got, len(elsewhere.Setup))
	}
}

func TestNoTableIsNamedWithoutTheOption(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *router.Options) { o.Table = solana.PublicKey{} })
	if got := w.instructions(w.quote(), nil).Tables; got == nil || len(got) != 0 {
		t.Errorf("tables are %v, want an empty list", got)
	}
}

func TestInstructionsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	quote := w.quote()
	changed := func(name string, value any) map[string]any {
		out := maps.Clone(quote)
		out[name] = value
		return out
	}
	for name, test := range map[string]struct {
		quote map[string]any
		more  map[string]any
		want  string
	}{
		"no quote":                     {nil, nil, "quoteResponse and userPublicKey"},
		"no user":                      {quote, map[string]any{"userPublicKey": solana.SystemProgramID.String()}, "quoteResponse and userPublicKey"},
		"a user that is no address":    {quote, map[string]any{"userPublicKey": "me"}, "JSON body"},
		"wrapping":                     {quote, map[string]any{"wrapAndUnwrapSol": true}, "wrapAndUnwrapSol"},
		"wrapping by default":          {quote, map[string]any{"wrapAndUnwrapSol": nil}, "wrapAndUnwrapSol"},
		"a quote of an unknown mint":   {changed("outputMint", address("other").String()), nil, "route"},
		"a quote of another direction": {changed("inputMint", address("other").String()), nil, "route"},
		"a quote with a number":        {changed("inAmount", 5), nil, "JSON body"},
	} {
		status, raw := w.call(http.MethodPost, "/swap-instructions", body(t, test.quote, test.more))
		if message, _ := object(t, raw)["error"].(string); status != http.StatusBadRequest || !strings.Contains(message, test.want) {
			t.Errorf("%s: got status %d and %s, want 400 and %q", name, status, raw, test.want)
		}
	}
	for _, path := range []string{"/", "/swap", "/quote/x"} {
		if status, _ := w.call(http.MethodGet, path, nil); status != http.StatusNotFound {
			t.Errorf("%s: got status %d, want 404", path, status)
		}
	}
	if status, _ := w.call(http.MethodGet, "/swap-instructions", nil); status != http.StatusMethodNotAllowed {
		t.Errorf("GET /swap-instructions: got status %d, want 405", status)
	}
}

func TestWideRouteObeysTheAccountLimit(t *testing.T) {
	t.Parallel()
	table := router.TableAddresses(newWorld(t, nil).market)
	for name, test := range map[string]struct {
		settings router.Settings
		more     []string
		want     int
		inTable  bool
	}{
		"wide":                         {router.Settings{Wide: 30}, nil, 30, true},
		"wide, and not in the table":   {router.Settings{Wide: 30, Outside: true}, nil, 30, false},
		"fewer accounts asked for":     {router.Settings{Wide: 30}, []string{"maxAccounts", "20"}, 13, true},
		"as many as the trade has":     {router.Settings{Wide: 30}, []string{"maxAccounts", "7"}, 0, true},
		"more accounts than the route": {router.Settings{Wide: 30}, []string{"maxAccounts", "64"}, 30, true},
		"direct routes asked for":      {router.Settings{Wide: 30}, []string{"onlyDirectRoutes", "true"}, 0, true},
		"direct routes not asked for":  {router.Settings{Wide: 30}, []string{"onlyDirectRoutes", "false"}, 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.set(test.settings)
			got := w.instructions(w.quote(test.more...), nil).Swap
			needed := encoded(w.trueSwap(sol, 148_039_741)).flags()
			if diff := cmp.Diff(needed, got.flags()[:len(needed)]); diff != "" {
				t.Errorf("the trade's accounts (-want +got):\n%s", diff)
			}
			pads := got.flags()[len(needed):]
			if len(pads) != test.want {
				t.Errorf("%d extra accounts, want %d", len(pads), test.want)
			}
			for _, pad := range pads {
				key, err := solana.PublicKeyFromBase58(pad)
				if err != nil {
					t.Fatalf("%s: want an account without rights: %v", pad, err)
				}
				if slices.Contains(table, key) != test.inTable {
					t.Errorf("account %s: want it in the table: %v", pad, test.inTable)
				}
			}
			if len(slices.Compact(slices.Sorted(slices.Values(pads)))) != len(pads) {
				t.Error("an account is named twice")
			}
		})
	}
}

func TestLiesOfQuotes(t *testing.T) {
	t.Parallel()
	honest := newWorld(t, nil).quote()
	for lie, want := range map[router.Lie]map[string]any{
		router.WrongAmount:  {"inAmount": "1000000001"},
		router.LowThreshold: {"outAmount": "299070182", "otherAmountThreshold": "296079481"},
		router.WrongMint:    {"outputMint": "another"},
	} {
		w := newWorld(t, nil)
		w.set(router.Settings{Lies: []router.LieRule{{Lie: lie, Call: router.CallQuote}}})
		got, differs := w.quote(), map[string]any{}
		for name, value := range honest {
			if name != "routePlan" && !cmp.Equal(value, got[name]) {
				differs[name] = got[name]
			}
		}
		if lie == router.WrongMint {
			differs["outputMint"] = "another" // in place of the mint, whose value does not matter
			if got["outputMint"] == honest["outputMint"] {
				t.Error("wrong_mint: the quote has the true output mint")
			}
		}
		if diff := cmp.Diff(want, differs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lie, diff)
		}
		if w.Stats().Lies[lie] != 1 {
			t.Errorf("%s: counted lies are %v, want 1 of this lie", lie, w.Stats().Lies)
		}
	}
}

func TestLiesOfInstructions(t *testing.T) {
	t.Parallel()
	const minimum = 148_039_741
	payer := address("fee payer")
	for lie, test := range map[router.Lie]struct {
		account solana.PublicKey
		check   func(w *world, honest wire, got *answer) bool
	}{
		router.WrongProgram: {check: func(_ *world, honest wire, got *answer) bool { return got.Swap.ProgramID != honest.ProgramID }},
		router.PayerAccount: {payer, func(_ *world, honest wire, got *answer) bool {
			return cmp.Equal(append(honest.flags(), payer.String()+" s w"), got.Swap.flags())
		}},
		router.PayerWritable: {payer, func(_ *world, honest wire, got *answer) bool {
			return cmp.Equal(append(honest.flags(), payer.String()+" w"), got.Swap.flags())
		}},
		router.ExtraSigner: {check: func(_ *world, honest wire, got *answer) bool {
			last := got.Swap.Accounts[len(got.Swap.Accounts)-1]
			return len(got.Swap.Accounts) == len(honest.Accounts)+1 && last.IsSigner && last.Pubkey != address("user").String()
		}},
		router.OtherUser: {check: func(_ *world, honest wire, got *answer) bool {
			hasUser := slices.Contains(got.Swap.flags(), address("user").String()+" s")
			return !hasUser && len(got.Swap.Accounts) == len(honest.Accounts) && got.Swap.Accounts[1].IsSigner
		}},
		router.ShortOutput: {check: func(w *world, _ wire, got *answer) bool {
			short := w.trueSwap(sol, minimum)
			short.DataBytes[0]++
			short.DataBytes = append(short.DataBytes, 0x88, 0x13) // 5000 basis points
			return cmp.Equal(encoded(short), got.Swap)
		}},
		router.PartialFill: {check: func(w *world, _ wire, got *answer) bool {
			return cmp.Equal(encoded(w.trueSwap(sol/2, minimum/2)), got.Swap)
		}},
		router.LowThreshold: {check: func(w *world, _ wire, got *answer) bool {
			return cmp.Equal(encoded(w.trueSwap(sol, 0)), got.Swap)
		}},
		router.BogusTable: {check: func(w *world, honest wire, got *answer) bool {
			return cmp.Equal(honest, got.Swap) && len(got.Tables) == 1 && got.Tables[0] != address("table").String() && got.Tables[0] != w.market.Address.String()
		}},
		router.ForeignTable: {check: func(w *world, honest wire, got *answer) bool {
			return cmp.Equal(honest, got.Swap) && cmp.Equal(got.Tables, []string{w.market.Address.String()})
		}},
	} {
		w := newWorld(t, nil)
		w.set(router.Settings{Lies: []router.LieRule{{Lie: lie, Account: test.account, Call: router.CallInstructions}}})
		got, honest := w.instructions(w.quote(), nil), encoded(w.trueSwap(sol, minimum))
		if !test.check(w, honest, got) {
			t.Errorf("%s: got %+v", lie, got)
		}
		if w.Stats().Lies[lie] != 1 {
			t.Errorf("%s: counted lies are %v, want 1 of this lie", lie, w.Stats().Lies)
		}
	}
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, call := range []string{router.CallQuote, router.CallInstructions} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			quote := w.quote()
			get := func(lie router.Lie) (int, []byte, error) {
				w.set(router.Settings{Lies: []router.LieRule{{Lie: lie}}})
				if call == router.CallQuote {
					return w.request(t.Context(), http.MethodGet, "/quote?"+quoteParams().Encode(), nil)
				}
				return w.request(t.Context(), http.MethodPost, "/swap-instructions", body(t, quote, nil))
			}
			if status, raw, err := get(router.Garbage); err != nil || status != http.StatusOK || json.Valid(raw) {
				t.Errorf("garbage: got status %d, error %v and %s, want 200 and no JSON", status, err, raw)
			}
			if status, raw, err := get(router.Huge); err != nil || status != http.StatusOK || len(raw) < 16<<20 || !json.Valid(raw) {
				t.Errorf("huge: got status %d, error %v and %d bytes, want 200 and 16 MiB of JSON", status, err, len(raw))
			}
			if _, raw, err := get(router.Truncated); !errors.Is(err, io.ErrUnexpectedEOF) || json.Valid(raw) {
				t.Errorf("truncated: got error %v, want an unexpected end", err)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	path := "/quote?" + quoteParams().Encode()
	w.set(router.Settings{Faults: []fault.Rule{{Status: 429, RetryAfter: 1500 * time.Millisecond}}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	limited, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = limited.Body.Close()
	if limited.StatusCode != http.StatusTooManyRequests || limited.Header.Get("Retry-After") != "2" {
		t.Errorf("got status %d and Retry-After %q, want 429 and 2", limited.StatusCode, limited.Header.Get("Retry-After"))
	}
	w.set(router.Settings{Faults: []fault.Rule{{Cut: true}}})
	if _, _, err := w.request(t.Context(), http.MethodGet, path, nil); !errors.Is(err, io.EOF) {
		t.Errorf("a cut gives error %v, want EOF", err)
	}
	for name, rule := range map[string]fault.Rule{"hang": {Hang: true}, "latency": {Latency: time.Hour}} {
		w.set(router.Settings{Faults: []fault.Rule{rule}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, _, err := w.request(ctx, http.MethodGet, path, nil)
			ended <- err
		}()
		for deadline := time.Now().Add(30 * time.Second); w.Stats().Faults[name] == 0 && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		select {
		case err := <-ended:
			t.Errorf("%s: the call ended with error %v, want it still waiting", name, err)
		default:
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v after the cancellation, want context.Canceled", name, err)
		}
	}
	w.set(router.Settings{Faults: []fault.Rule{{Method: router.CallInstructions, Status: 503}}})
	quote := w.quote()
	if status, _ := w.call(http.MethodPost, "/swap-instructions", body(t, quote, nil)); status != http.StatusServiceUnavailable {
		t.Errorf("swap-instructions: got status %d, want 503", status)
	}
	w.set(router.Settings{})
	w.instructions(quote, nil)
	want := router.Stats{
		Calls: map[string]uint64{"quote": 5, "swap-instructions": 2}, Refused: map[string]uint64{}, Lies: map[router.Lie]uint64{},
		Faults: map[string]uint64{"status": 2, "cut": 1, "hang": 1, "latency": 1},
	}
	if diff := cmp.Diff(want, w.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestSameSeedDrawsTheSameLies(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) (out []bool) {
		w := newWorld(t, func(o *router.Options) { o.Seed = seed })
		w.set(router.Settings{Lies: []router.LieRule{{Lie: router.WrongAmount, Probability: 0.5}}})
		for range 40 {
			out = append(out, w.quote()["inAmount"] == "1000000001")
		}
		return out
	}
	first := draw(7)
	if !cmp.Equal(first, draw(7)) {
		t.Error("the same seed draws different lies")
	}
	lies := 0
	for _, lied := range first {
		if lied {
			lies++
		}
	}
	if lies < 10 || lies > 30 || cmp.Equal(first, draw(8)) {
		t.Errorf("%d of 40 answers were lies, want about half, and another seed to draw different ones", lies)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"wide":257}`:                           "wide is 257",
		`{"wide":-1}`:                            "wide is -1",
		`{"narrow":1}`:                           "narrow",
		`[]`:                                     "JSON object",
		`{} {}`:                                  "more after it",
		`{"faults":[{"status":200}]}`:            "status is 200",
		`{"faults":[{"lag":3}]}`:                 "no other fault",
		`{"faults":[{"drop":true}]}`:             "no other fault",
		`{"faults":[{"method":"x","cut":true}]}`: `method is "x"`,
		`{"lies":[{"lie":"x"}]}`:                 `lie is "x"`,
		`{"lies":[{"lie":"wrong_mint","call":"swap-instructions"}]}`:                           "call is",
		`{"lies":[{"lie":"wrong_mint","probability":2}]}`:                                      "probability is 2",
		`{"lies":[{"lie":"payer_account"}]}`:                                                   "account: expected",
		`{"lies":[{"lie":"garbage","account":"So11111111111111111111111111111111111111112"}]}`: "account: expected",
	} {
		if _, err := router.ParseSettings([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q in it", raw, err, want)
		}
	}
	raw := []byte(`{"wide":5,"outside":true,"faults":[{"method":"quote","probability":0.5,"latency":"1s"}],"lies":[{"lie":"payer_account","account":"So11111111111111111111111111111111111111112"},{"lie":"huge"}]}`)
	settings, err := router.ParseSettings(raw)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	w.set(settings)
	written, err := json.Marshal(w.Settings())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(t, raw), object(t, written)); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if err := w.Set(router.Settings{Wide: 300}); err == nil {
		t.Error("invalid settings are accepted, want an error")
	}
	if diff := cmp.Diff(settings, w.Settings()); diff != "" {
		t.Errorf("refused settings changed the old ones (-want +got):\n%s", diff)
	}
}
