package router

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/swap"
)

var (
	wsol   = solana.MustPublicKeyFromBase58("So11111111111111111111111111111111111111112")
	usdc   = solana.MustPublicKeyFromBase58("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v")
	user   = solana.MustPublicKeyFromBase58("BQ72nSv9f3PRyRKCBnHLVrerrv37CYTHm5h3s9VSGQDV")
	jup    = solana.MustPublicKeyFromBase58("JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4")
	amm    = solana.MustPublicKeyFromBase58("HXpGFJGCEEFdV31tDmjDBaJMEB1fKLiAoKoWr3Fnonid")
	table  = solana.MustPublicKeyFromBase58("GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY")
	table2 = solana.MustPublicKeyFromBase58("6HE1CjaNAPEq8Hj7jor9zCMtwc4m9FQyzb2QNN3dRLe5")
)

// quoteRequest is the request that goodQuote answers.
var quoteRequest = swap.QuoteRequest{InputMint: wsol, OutputMint: usdc, User: user, Amount: 100_000_000, SlippageBps: 100}

// goodQuote is an answer in the API's own form, with fields that the relay does not read.
const goodQuote = `{"inputMint":"So11111111111111111111111111111111111111112","inAmount":"100000000",
 "outputMint":"EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v","outAmount":"17057460","otherAmountThreshold":"16886885",
 "swapMode":"ExactIn","slippageBps":100,"platformFee":null,"priceImpactPct":"0.0001",
 "routePlan":[{"swapInfo":{"ammKey":"HXpGFJGCEEFdV31tDmjDBaJMEB1fKLiAoKoWr3Fnonid","label":"A <b>&amp; B"},"percent":100}],
 "contextSlot":324307186,"timeTaken":1.2e-2}`

// goodInstructions is an answer in the API's own form, for user.
const goodInstructions = `{"tokenLedgerInstruction":null,
 "computeBudgetInstructions":[{"programId":"ComputeBudget111111111111111111111111111111","accounts":[],"data":"AsBcFQA="}],
 "setupInstructions":[],
 "swapInstruction":{"programId":"JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4","accounts":[
  {"pubkey":"BQ72nSv9f3PRyRKCBnHLVrerrv37CYTHm5h3s9VSGQDV","isSigner":true,"isWritable":false},
  {"pubkey":"HXpGFJGCEEFdV31tDmjDBaJMEB1fKLiAoKoWr3Fnonid","isSigner":false,"isWritable":true}],"data":"5RfLl3rjrSo="},
 "cleanupInstruction":null,"otherInstructions":[],
 "addressLookupTableAddresses":["GxS6FiQ9RbErBB48mE34U4Jv13MdEJov4R1e5KgFzRFY"],"simulationError":null}`

// replaceIn returns a good answer with one text replaced by another.
func replaceIn(t *testing.T, good, old, text string) string {
	t.Helper()
	if strings.Count(good, old) != 1 {
		t.Fatalf("%q occurs %d times, want once", old, strings.Count(good, old))
	}
	return strings.Replace(good, old, text, 1)
}

func decodedQuote(t *testing.T) *swap.Quote {
	t.Helper()
	q, err := decodeQuote([]byte(goodQuote), quoteRequest)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// newClient makes a client, with defaults for options that are not set.
func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	o.Name = cmp.Or(o.Name, "r")
	if o.HTTP == nil {
		o.HTTP = NewHTTPClient()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second // longer than a busy machine takes to answer
	}
	o.Rand = func() float64 { return 0 }
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// reply is a router's answer to a call.
type reply struct {
	status int // 0 is 200
	header map[string]string
	body   string
}

func (r reply) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// server is a router over HTTP that keeps the requests that it receives.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func newServer(t *testing.T, r reply) *server {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range r.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(r.code())
		_, _ = io.WriteString(w, r.body) // a client that hangs up is part of the tests
	})
}

func serve(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
		s.mu.Unlock()
		// net/http notices that a client has disconnected only once the body is read,
		// and some handlers wait for the disconnection.
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections() // some handlers wait for their client to disconnect
		s.Close()
	})
	return s
}

func (s *server) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// memoryRouter is a router in memory: an HTTP transport for tests in virtual time.
type memoryRouter struct {
	mu     sync.Mutex
	answer func(*http.Request) (*http.Response, error)
	count  int
}

func (m *memoryRouter) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	m.count++
	answer := m.answer
	m.mu.Unlock()
	return answer(r)
}

func (m *memoryRouter) setReply(r reply) {
	m.setAnswer(func(*http.Request) (*http.Response, error) { return response(r), nil })
}

func (m *memoryRouter) setAnswer(answer func(*http.Request) (*http.Response, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

func (m *memoryRouter) calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

func response(r reply) *http.Response {
	header := http.Header{}
	for name, value := range r.header {
		header.Set(name, value)
	}
	return &http.Response{StatusCode: r.code(), Header: header, Body: io.NopCloser(strings.NewReader(r.body))}
}

// recorder is an Observer that records events without their durations.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (o *recorder) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *recorder) RouterCalled(_, call, outcome string, took time.Duration) {
	o.note("%s %s", call, outcome)
	if took < 0 {
		o.note("negative duration")
	}
}
func (o *recorder) RouterSkipped(_, call, kind string) { o.note("%s skipped %s", call, kind) }
func (o *recorder) RouteRejected(what string)          { o.note("route_rejected %s", what) }

func (o *recorder) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.lines...)
}

// lockedBuffer may be written concurrently.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
