// Package router is a client of a swap router that speaks Jupiter's swap API, v2 (GET
// /build) or v1 (GET /quote, then POST /swap-instructions). It asks for quotes and for the
// instructions that carry them out, and checks the answers against the request. Before
// signing, the caller still has to check which accounts the instructions touch.
//
// A router's URL and key are credentials, and a request to it contains part of a client's request.
// No error, log line or metric contains any part of the URL, the key or the request.
package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

const (
	defaultTimeout = 3 * time.Second

	// maxSlippageBps is 100 percent, in hundredths of a percent.
	maxSlippageBps = 10_000
)

// The names of the calls, as the Observer receives them.
const (
	CallBuild        = "build"
	CallQuote        = "quote"
	CallInstructions = "instructions"
)

// Options configure a Client. Name, BaseURL, HTTP, Now, Rand and Log are required.
type Options struct {
	// Name identifies the router in logs and metrics.
	Name string
	// BaseURL is the URL to which each call appends its path, http or https, such as
	// https://api.jup.ag/swap/v2. If its path ends with /v2, the client speaks the API's v2,
	// else v1. Its user, path and query may hold credentials.
	BaseURL string `json:"-"`
	// APIKey is sent as the header x-api-key; empty for none.
	APIKey string `json:"-"`
	// HTTP makes the calls; NewHTTPClient gives a suitable one. Regardless of its settings,
	// no redirect is followed and no cookie is kept.
	HTTP *http.Client
	// Now is the clock; Rand gives numbers from 0 to below 1 for jitter.
	Now  func() time.Time
	Rand func() float64
	// Log gets a line when the breaker opens, and when it closes again.
	Log *slog.Logger
	// Observer receives every call. Nil for none.
	Observer Observer
	// Timeout bounds one call, and separately the wait for the capacity to make it; 0 is 3
	// s.
	Timeout time.Duration
	// Parallel is how many calls run at once; 0 is 16.
	Parallel int
	// Take takes one call from the budget. If the budget is spent, it returns how long to wait
	// before the next try. Nil for no budget.
	Take func(ctx context.Context) (wait time.Duration, err error)
}

// String leaves URL and key out.
func (o Options) String() string { return fmt.Sprintf("swap router %s, timeout %s", o.Name, o.Timeout) }

// GoString is String.
func (o Options) GoString() string { return o.String() }

// LogValue is String.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// Observer receives events. Its methods must not block.
type Observer interface {
	// RouterCalled records every call that was made: the router's name, CallBuild, CallQuote
	// or CallInstructions, the outcome ("ok", "no_route", "route_rejected" or a kind of
	// swap.RouterUnavailable), and the duration.
	RouterCalled(router, call, outcome string, took time.Duration)
	// RouterSkipped records every call that was not made, by the kind of
	// swap.RouterUnavailable: busy, breaker_open or cancelled.
	RouterSkipped(router, call, kind string)
	// RouteRejected counts an answer that contradicts the request, by swap.RejectedRoute's
	// What.
	RouteRejected(what string)
}

// Client asks one router. It repeats a call only if an idle connection turned out to be dead.
// Other repetitions are up to the caller, who knows how long to wait for a price. A Client is
// safe for concurrent use.
//
// Every error of a call is *swap.RouterUnavailable, *swap.NoRoute or *swap.RejectedRoute,
// except for an invalid request, which is never sent.
type Client struct {
	name string
	// base and key are functions, so that formatting a Client with any verb does not show
	// their contents.
	base     func() *url.URL
	key      func() string
	version2 bool // the API's version is 2, not 1
	http     *http.Client
	now      func() time.Time
	log      *slog.Logger
	observer Observer
	timeout  time.Duration
	inFlight chan struct{}
	take     func(ctx context.Context) (wait time.Duration, err error)
	breaker  *outbound.Breaker
	last     *lastFault
	calledAt *atomic.Int64 // when a call was last requested, in Unix nanoseconds
}

// New makes a client. It makes no call: a router that is down when the relay
// starts may be up later.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.BaseURL)
	switch {
	case o.Name == "" || o.HTTP == nil || o.Now == nil || o.Rand == nil || o.Log == nil:
		return nil, errors.New("router client needs a name, an HTTP client, a clock, a source of random numbers and a log")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		// The parser's error is left out, because it repeats the URL.
		return nil, fmt.Errorf("router URL of %d bytes is not usable: expected http:// or https:// and a host", len(o.BaseURL))
	case !fitsHeader(o.APIKey):
		return nil, fmt.Errorf("router API key of %d bytes is not usable: expected printable ASCII without spaces", len(o.APIKey))
	case o.Timeout < 0:
		return nil, fmt.Errorf("router timeout is %s: expected a positive duration, or 0 for %s", o.Timeout, defaultTimeout)
	case o.Parallel < 0:
		return nil, fmt.Errorf("router calls at once are %d: expected a positive number, or 0 for %d", o.Parallel, defaultParallel)
	}
	client := *o.HTTP
	// A redirect is not the router's answer, and would carry the key elsewhere.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Jar = nil
	key := o.APIKey
	c := &Client{
		name: o.Name,
		base: func() *url.URL { return u }, key: func() string { return key },
		version2: speaksVersion2(u), take: o.Take,
		http: &client, now: o.Now, log: o.Log, observer: o.Observer,
		timeout: cmp.Or(o.Timeout, defaultTimeout), inFlight: make(chan struct{}, cmp.Or(o.Parallel, defaultParallel)),
		last: new(lastFault), calledAt: new(atomic.Int64),
	}
	if c.observer == nil {
		c.observer = noObserver{}
	}
	if c.breaker, err = outbound.NewBreaker(outbound.BreakerOptions{Now: o.Now, Rand: o.Rand, Changed: c.breakerChanged}); err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	return c, nil
}

// NewHTTPClient makes a client that keeps its connections and ignores proxies from the
// environment: a proxy would see the key, and what clients swap.
func NewHTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           64,
			MaxIdleConnsPerHost:    64,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

// fitsHeader reports whether the key can be sent in a header unchanged.
func fitsHeader(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}

// Close closes idle connections. Calls under way continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Quote asks for the price of a swap, and with the API's v2 also for its instructions.
func (c *Client) Quote(ctx context.Context, q swap.QuoteRequest) (*swap.Quote, error) {
	switch {
	case q.Amount == 0:
		return nil, errors.New("quote for an amount of 0: expected at least 1")
	case q.InputMint == q.OutputMint:
		return nil, errors.New("quote from a mint to itself: expected two mints")
	case q.SlippageBps < 0 || q.SlippageBps > maxSlippageBps:
		return nil, fmt.Errorf("quote with a slippage of %d: expected 0 to %d hundredths of a percent", q.SlippageBps, maxSlippageBps)
	case q.MaxAccounts < 0:
		return nil, fmt.Errorf("quote for %d accounts: expected a positive number, or 0 to leave it to the router", q.MaxAccounts)
	case q.User.IsZero():
		return nil, errors.New("quote for no user: expected the account whose tokens are swapped")
	}
	query := url.Values{
		"inputMint":   {q.InputMint.String()},
		"outputMint":  {q.OutputMint.String()},
		"amount":      {strconv.FormatUint(q.Amount, 10)},
		"slippageBps": {strconv.Itoa(q.SlippageBps)},
	}
	if q.MaxAccounts > 0 {
		query.Set("maxAccounts", strconv.Itoa(q.MaxAccounts))
	}
	get := c.quoteCall(q, query)
	get.decode = func(body []byte) (*swap.Quote, error) {
		quote, err := decodeQuote(body, q)
		if err == nil && c.version2 {
			quote.Instructions, err = decodeInstructions(body, q.User)
		}
		if err != nil {
			return nil, err
		}
		quote.Router, quote.Received = c.name, c.now()
		return quote, nil
	}
	return ask(ctx, c, get)
}

// Instructions returns the instructions that carry out a quote for the user. They pay from
// and into the user's own associated token accounts, SOL as wrapped SOL. A quote of the API's
// v2 already has them. With v1 a call asks for them, and sends the quote back unchanged.
func (c *Client) Instructions(ctx context.Context, q *swap.Quote, user solana.PublicKey) (*swap.Instructions, error) {
	if q != nil && q.Instructions != nil {
		return q.Instructions, nil
	}
	if q == nil || !isObject(q.Raw) {
		return nil, errors.New("instructions for a quote without the router's answer: expected one that Quote gave")
	}
	return ask(ctx, c, call[*swap.Instructions]{name: CallInstructions, method: http.MethodPost, path: "swap-instructions", body: instructionsRequest(q, user), decode: func(body []byte) (*swap.Instructions, error) {
		return decodeInstructions(body, user)
	}})
}

// instructionsRequest makes the body of the request for a quote's instructions. It writes the
// JSON by hand, because an encoder would rewrite the quote.
//
// The body has no useSharedAccounts, so that the router decides. With true, swaps through
// markets without shared accounts would fail. With false, every route through several markets
// would need token accounts that nobody creates. The body has no destinationTokenAccount either:
// the output then goes to the user's own account, which is the only one that the router accepts.
func instructionsRequest(q *swap.Quote, user solana.PublicKey) []byte {
	body := []byte(`{"userPublicKey":"` + user.String() + `","wrapAndUnwrapSol":false,"dynamicComputeUnitLimit":false,"quoteResponse":`)
	body = append(body, q.Raw...)
	return append(body, '}')
}

// noObserver observes nothing.
type noObserver struct{}

func (noObserver) RouterCalled(string, string, string, time.Duration) {}
func (noObserver) RouterSkipped(string, string, string)               {}
func (noObserver) RouteRejected(string)                               {}
