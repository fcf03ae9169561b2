package router

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

func TestQuoteCallSendsTheRequest(t *testing.T) {
	t.Parallel()
	always := "inputMint=" + wsol.String() + "&outputMint=" + usdc.String() + "&restrictIntermediateTokens=true"
	tests := map[string]struct {
		base, key string
		change    func(*swap.QuoteRequest)
		wantPath  string
		wantQuery string // in alphabetical order
		wantAuth  string
	}{
		"asks for exactly the amount": {
			wantPath: "/quote", wantQuery: "amount=100000000&" + always + "&slippageBps=100",
		},
		"is appended to the path of the configured URL": {
			base: "/swap/v1", wantPath: "/swap/v1/quote", wantQuery: "amount=100000000&" + always + "&slippageBps=100",
		},
		"does not double a slash": {
			base: "/swap/v1/", wantPath: "/swap/v1/quote", wantQuery: "amount=100000000&" + always + "&slippageBps=100",
		},
		"keeps the configured URL's query": {
			base: "/swap?tier=a%26b&amount=1", wantPath: "/swap/quote", wantQuery: "amount=100000000&" + always + "&slippageBps=100&tier=a%26b",
		},
		"sends its key in a header": {
			key: "k-123", wantPath: "/quote", wantQuery: "amount=100000000&" + always + "&slippageBps=100",
		},
		"can be for the largest amount of 64 bits, without slippage": {
			change:   func(q *swap.QuoteRequest) { q.Amount, q.SlippageBps = math.MaxUint64, 0 },
			wantPath: "/quote", wantQuery: "amount=18446744073709551615&" + always + "&slippageBps=0",
		},
		"can be for few accounts and one market": {
			change:   func(q *swap.QuoteRequest) { q.MaxAccounts, q.DirectOnly = 20, true },
			wantPath: "/quote", wantQuery: "amount=100000000&inputMint=" + wsol.String() + "&maxAccounts=20&onlyDirectRoutes=true&outputMint=" + usdc.String() + "&restrictIntermediateTokens=true&slippageBps=100",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, reply{body: "{}"})
			c := newClient(t, Options{BaseURL: s.URL + test.base, APIKey: test.key})
			q := quoteRequest
			if test.change != nil {
				test.change(&q)
			}
			if _, err := c.Quote(t.Context(), q); err == nil {
				t.Fatal("an empty answer is accepted")
			}
			got := s.requests[0]
			if got.Method != http.MethodGet || got.URL.Path != test.wantPath || got.URL.RawQuery != test.wantQuery {
				t.Errorf("request is %s %s\n with %s\nwant %s", got.Method, got.URL.Path, got.URL.RawQuery, test.wantQuery)
			}
			if key, there := got.Header["X-Api-Key"]; there != (test.key != "") || (there && key[0] != test.key) {
				t.Errorf("key is %q, want %q", key, test.key)
			}
			if s.bodies[0] != "" {
				t.Errorf("the request has a body of %d bytes, want none", len(s.bodies[0]))
			}
		})
	}
}

// goodBuild is an answer of the API's v2 in its own form, for user.
func goodBuild(t *testing.T) string {
	t.Helper()
	v2 := replaceIn(t, goodInstructions, `"addressLookupTableAddresses":["GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY"]`,
		`"addressesByLookupTableAddress":{"GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY":["HXpGFJGCEEFdV31tDmjDBaJMEB1fKLiAoKoWr3Fnonid"]}`)
	return strings.TrimSuffix(goodQuote, "}") + "," + strings.TrimPrefix(v2, "{")
}

func TestBuildIsOneCallForQuoteAndInstructions(t *testing.T) {
	t.Parallel()
	s := newServer(t, reply{body: goodBuild(t)})
	c := newClient(t, Options{BaseURL: s.URL + "/swap/v2"})
	request := quoteRequest
	request.MaxAccounts, request.DirectOnly = 20, true
	q, err := c.Quote(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Instructions(t.Context(), q, user)
	if err != nil {
		t.Fatal(err)
	}
	if q.OutAmount != 17_057_460 || q.Threshold != 16_886_885 || got.Program != jup || len(got.Accounts) != 2 || got.Others != 0 {
		t.Errorf("quote is %+v, instructions are %+v", q, got)
	}
	if diff := cmp.Diff([]solana.PublicKey{table}, got.LookupTables); diff != "" {
		t.Errorf("lookup tables differ (-want +got):\n%s", diff)
	}
	want := "amount=100000000&inputMint=" + wsol.String() + "&maxAccounts=20&outputMint=" + usdc.String() + "&slippageBps=100&taker=" + user.String()
	if r := s.requests[0]; len(s.requests) != 1 || r.Method != http.MethodGet || r.URL.Path != "/swap/v2/build" || r.URL.RawQuery != want {
		t.Errorf("%d requests, the first is %s %s with\n%s\nwant one GET /swap/v2/build with\n%s", len(s.requests), r.Method, r.URL.Path, r.URL.RawQuery, want)
	}
}

func TestUnusableAnswersToBuild(t *testing.T) {
	t.Parallel()
	tables := `{"GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY":["HXpGFJGCEEFdV31tDmjDBaJMEB1fKLiAoKoWr3Fnonid"]}`
	signer := `"pubkey":"BQ72nSv9f3PRyRKCBnHLVrerrv37CYTHm5h3s9VSGQDV","isSigner":true`
	for name, test := range map[string]struct{ old, new, want string }{
		"a quote for another amount":        {`"inAmount":"100000000"`, `"inAmount":"100000001"`, "route_rejected amount"},
		"another signer":                    {signer, `"pubkey":"HXpGFJGCEEFdV31tDmjDBaJMEB1fKLiAoKoWr3Fnonid","isSigner":true`, "route_rejected signer"},
		"no instruction":                    {`"swapInstruction":{`, `"another":{`, swap.FaultBadResponse},
		"tables that are no object":         {tables, `"none"`, swap.FaultBadResponse},
		"a table that is no address":        {tables, `{"x":[]}`, swap.FaultBadResponse},
		"the field of lookup tables is not": {`"addressesByLookupTableAddress":` + tables, `"other":{}`, swap.FaultBadResponse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, reply{body: replaceIn(t, goodBuild(t), test.old, test.new)})
			if _, err := newClient(t, Options{BaseURL: s.URL + "/v2"}).Quote(t.Context(), quoteRequest); describe(err) != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	s := newServer(t, reply{body: goodQuote})
	now := time.Unix(1_800_000_000, 0)
	c := newClient(t, Options{BaseURL: s.URL, Now: func() time.Time { return now }})
	got, err := c.Quote(t.Context(), quoteRequest)
	if err != nil {
		t.Fatal(err)
	}
	want := &swap.Quote{
		Router: "r", InAmount: 100_000_000, OutAmount: 17_057_460, Threshold: 16_886_885, ContextSlot: 324_307_186,
		Received: now, Raw: json.RawMessage(goodQuote),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("quote differs (-want +got):\n%s", diff)
	}
}

// TestInstructionsCallSendsTheQuote: the quote is sent back byte for byte, without
// other parameters that could redirect the output or unwrap SOL.
func TestInstructionsCallSendsTheQuote(t *testing.T) {
	t.Parallel()
	s := newServer(t, reply{body: goodInstructions})
	c := newClient(t, Options{BaseURL: s.URL + "/swap/v1", APIKey: "k-123"})
	got, err := c.Instructions(t.Context(), decodedQuote(t), user)
	if err != nil {
		t.Fatal(err)
	}
	want := &swap.Instructions{
		Program:      jup,
		Accounts:     []solana.AccountMeta{{PublicKey: user, IsSigner: true}, {PublicKey: amm, IsWritable: true}},
		Data:         []byte{0xe5, 0x17, 0xcb, 0x97, 0x7a, 0xe3, 0xad, 0x2a},
		LookupTables: []solana.PublicKey{table},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instructions differ (-want +got):\n%s", diff)
	}
	requests := s.requests[0]
	if requests.Method != http.MethodPost || requests.URL.Path != "/swap/v1/swap-instructions" || requests.URL.RawQuery != "" {
		t.Errorf("request is %s %s, want POST /swap/v1/swap-instructions", requests.Method, requests.URL)
	}
	for name, want := range map[string]string{"X-Api-Key": "k-123", "Content-Type": "application/json", "X-Idempotency-Key": ""} {
		if requests.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, requests.Header.Get(name), want)
		}
	}
	if !strings.Contains(s.bodies[0], goodQuote) {
		t.Errorf("the quote is not sent back unchanged:\n%s", s.bodies[0])
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(s.bodies[0]), &body); err != nil {
		t.Fatal(err)
	}
	delete(body, "quoteResponse")
	if diff := cmp.Diff(map[string]any{"userPublicKey": user.String(), "wrapAndUnwrapSol": false, "dynamicComputeUnitLimit": false}, body); diff != "" {
		t.Errorf("the rest of the request differs (-want +got):\n%s", diff)
	}
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	t.Parallel()
	quote := func(change func(*swap.QuoteRequest)) func(*Client) error {
		return func(c *Client) error {
			q := quoteRequest
			change(&q)
			_, err := c.Quote(t.Context(), q)
			return err
		}
	}
	instructions := func(q *swap.Quote) func(*Client) error {
		return func(c *Client) error {
			_, err := c.Instructions(t.Context(), q, user)
			return err
		}
	}
	tests := map[string]struct {
		do   func(*Client) error
		want string
	}{
		"an amount of zero":                                      {quote(func(q *swap.QuoteRequest) { q.Amount = 0 }), "expected at least 1"},
		"a swap of a mint to itself":                             {quote(func(q *swap.QuoteRequest) { q.OutputMint = q.InputMint }), "expected two mints"},
		"a negative slippage":                                    {quote(func(q *swap.QuoteRequest) { q.SlippageBps = -1 }), "expected 0 to 10000"},
		"slippage above 100 percent":                             {quote(func(q *swap.QuoteRequest) { q.SlippageBps = 10_001 }), "expected 0 to 10000"},
		"a negative number of accounts":                          {quote(func(q *swap.QuoteRequest) { q.MaxAccounts = -1 }), "expected a positive number"},
		"instructions for no quote":                              {instructions(nil), "expected one that Quote gave"},
		"instructions for a quote without an answer":             {instructions(&swap.Quote{InAmount: 1}), "expected one that Quote gave"},
		"instructions for a quote that closes the request early": {instructions(&swap.Quote{Raw: json.RawMessage(`{}},"feeAccount":{"a":1`)}), "expected one that Quote gave"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, reply{body: goodQuote})
			if err := test.do(newClient(t, Options{BaseURL: s.URL})); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want … %s …", err, test.want)
			}
			if s.calls() != 0 {
				t.Error("the request was sent")
			}
		})
	}
}

func TestNewRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"no name":                    {func(o *Options) { o.Name = "" }, "needs a name"},
		"no HTTP client":             {func(o *Options) { o.HTTP = nil }, "an HTTP client"},
		"no clock":                   {func(o *Options) { o.Now = nil }, "a clock"},
		"no random numbers":          {func(o *Options) { o.Rand = nil }, "random numbers"},
		"no log":                     {func(o *Options) { o.Log = nil }, "a log"},
		"no URL":                     {func(o *Options) { o.BaseURL = "" }, "URL of 0 bytes"},
		"another scheme":             {func(o *Options) { o.BaseURL = "ftp://" + canary }, "expected http:// or https:// and a host"},
		"no host":                    {func(o *Options) { o.BaseURL = "https:///" + canary }, "and a host"},
		"a malformed URL":            {func(o *Options) { o.BaseURL = "https://a b/" + canary + "%" }, "expected http://"},
		"a key of two lines":         {func(o *Options) { o.APIKey = canary + "\r\nHost: x" }, "expected printable ASCII"},
		"a negative timeout":         {func(o *Options) { o.Timeout = -1 }, "expected a positive duration, or 0 for 3s"},
		"a negative number of calls": {func(o *Options) { o.Parallel = -1 }, "or 0 for 16"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{
				Name: "r", BaseURL: "http://127.0.0.1", HTTP: NewHTTPClient(), Now: time.Now, Rand: func() float64 { return 0 },
				Log: slog.New(slog.DiscardHandler),
			}
			if _, err := New(o); err != nil {
				t.Fatal(err)
			}
			test.change(&o)
			_, err := New(o)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("error is %v, want … %s … and no value", err, test.want)
			}
		})
	}
}

func TestCallerWhoStopsWaiting(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	calls := map[string]func(context.Context, *Client) error{
		"quote": func(ctx context.Context, c *Client) error { _, err := c.Quote(ctx, quoteRequest); return err },
		"instructions": func(ctx context.Context, c *Client) error {
			_, err := c.Instructions(ctx, decodedQuote(t), user)
			return err
		},
	}
	for name, do := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, hang)
			observer := &recorder{}
			c := newClient(t, Options{BaseURL: s.URL, Observer: observer})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := do(ctx, c)
			var u *swap.RouterUnavailable
			if !errors.As(err, &u) || u.Kind != swap.FaultCancelled || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, swap.ErrRouterUnavailable) {
				t.Errorf("error is %#v, want cancelled, because of the deadline", err)
			}
			if diff := cmp.Diff([]string{name + " cancelled"}, observer.all()); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}
