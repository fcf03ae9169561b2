// Package rpc calls one Solana endpoint over JSON-RPC, for the relay and the operator. It
// implements the protocol itself, on net/http, because it needs parts that solana-go's RPC client
// lacks: context slots, minContextSlot, the data of a preflight failure, and errors that never
// contain the endpoint's URL.
package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// DefaultTimeout is the default of Options.Timeout.
	DefaultTimeout = 5 * time.Second
)

// Options configure a Client.
type Options struct {
	// URL is the endpoint, http or https. Credentials in it, as user info, path or query,
	// are secret: they appear in no error, in no log and in no formatting of the options.
	URL string `json:"-"`
	// HTTP makes the calls; NewHTTPClient returns a suitable one.
	HTTP *http.Client
	// Now is the clock for the durations that Observe gets.
	Now func() time.Time
	// Timeout bounds one attempt of one call. getBlock and getSignaturesForAddress have
	// four times as long. 0 means 5 s.
	Timeout time.Duration
	// Silent omits the endpoint's own messages from errors.
	Silent bool
	// Batches lets sends without preflight that are ready at the same moment share a request, a JSON-RPC
	// batch, while the endpoint takes batches.
	Batches bool
	// Observe is called after every attempt with its RPC method, its class ("ok", "refused",
	// "preflight" or a kind of onchain.Unavailable) and its duration. Nil for none.
	Observe func(method, class string, took time.Duration)
}

// String omits the URL.
func (o Options) String() string { return fmt.Sprintf("client of an endpoint, timeout %s", o.Timeout) }

// GoString returns the same as String.
func (o Options) GoString() string { return o.String() }

// LogValue returns the same as String.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// Client calls one endpoint. It repeats no call, except a send whose batch the endpoint did not take. The
// caller may ask another endpoint instead, and the submission's state decides whether a transaction is
// sent again. Safe for concurrent use.
//
// Every error of a call is *onchain.Unavailable (the outcome is unknown: match
// onchain.ErrUnavailable), *onchain.RPCError, *onchain.SendError, onchain.ErrSlotSkipped or
// onchain.ErrBlockPruned.
type Client struct {
	// endpoint and redact are functions so that formatting a Client, with any verb, does not
	// show their contents.
	endpoint func() *url.URL
	redact   func(string) string
	silent   bool
	http     *http.Client
	now      func() time.Time
	timeout  time.Duration
	// unreadTimeout bounds how long drain reads.
	unreadTimeout time.Duration
	observe       func(method, class string, took time.Duration)

	// version is the newest transaction version that the endpoint is asked for. The client
	// and its gated copies share it.
	version *atomic.Int64

	// sends makes the sends without preflight; nil without batches. The client and its gated copies share it.
	sends *sendBatches

	// gate is called before every call, and may wait; nil for none.
	gate func(context.Context) error
}

// New makes a client. It makes no call, because an endpoint that is down when the relay starts may
// be up later.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	switch {
	case o.HTTP == nil || o.Now == nil:
		return nil, errors.New("chain client needs an HTTP client and a clock")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		// The parser's error is omitted, because it repeats the URL.
		return nil, fmt.Errorf("RPC URL of %d bytes is not usable: expected http:// or https:// and a host", len(o.URL))
	case o.Timeout < 0:
		return nil, fmt.Errorf("RPC timeout is %s: expected a positive duration, or 0 for %s", o.Timeout, DefaultTimeout)
	}
	c := &Client{endpoint: func() *url.URL { return u }, redact: redactor(u).Replace, http: o.HTTP, now: o.Now, timeout: o.Timeout, unreadTimeout: unreadTimeout, observe: o.Observe, silent: o.Silent, version: new(atomic.Int64)}
	c.version.Store(knownVersion)
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if c.observe == nil {
		c.observe = func(string, string, time.Duration) {}
	}
	if o.Batches {
		c.sends = newSendBatches(c)
	}
	return c, nil
}

// Gated returns a client of the same endpoint whose calls wait for gate. When gate returns
// an error, the call is not made and fails with onchain.KindBudget.
func (c *Client) Gated(gate func(context.Context) error) *Client {
	gated := *c
	gated.gate = gate
	return &gated
}

// NewHTTPClient returns a client that keeps as many connections as a busy relay uses, and
// follows no redirect: a signed transaction goes only to the configured endpoint.
func NewHTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        256,
			MaxIdleConnsPerHost: 256,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// read makes a call that changes nothing, and decodes the result. A result that cannot be
// decoded is an error.
func read[T any](ctx context.Context, c *Client, method string, params ...any) (T, error) {
	return readAs[T](ctx, c, method, false, params)
}

// readOrNull is like read, for a method that answers null for an unknown object.
func readOrNull[T any](ctx context.Context, c *Client, method string, params ...any) (T, error) {
	return readAs[T](ctx, c, method, true, params)
}

var errNull = errors.New("the result is null")

func readAs[T any](ctx context.Context, c *Client, method string, nullable bool, params []any) (T, error) {
	var out T
	err := c.call(ctx, method, params, func(d *jsontext.Decoder) error {
		if d.PeekKind() == 'n' && !nullable {
			return errors.Join(d.SkipValue(), errNull)
		}
		return json.UnmarshalDecode(d, &out)
	})
	if err != nil && ctx.Err() != nil {
		err = Ended(ctx, method)
	}
	return out, err
}

// call makes one attempt, as soon as gate permits it, and reports it to observe. decode
// gets the result.
func (c *Client) call(ctx context.Context, method string, params []any, decode decoder) error {
	return c.gated(ctx, method, func() error { return c.attempt(ctx, method, params, decode) })
}

// gated runs a call's attempt as soon as gate permits it, and reports it to observe.
func (c *Client) gated(ctx context.Context, method string, attempt func() error) error {
	if c.gate != nil {
		if err := c.gate(ctx); err != nil {
			return gateError(ctx, method, err)
		}
	}
	start := c.now()
	err := attempt()
	c.observe(method, ClassOf(err), c.now().Sub(start))
	return err
}

// Timeout returns how long a call of the method may take, given the usual timeout. Two methods get
// four times as long: a full block is megabytes long, and the list of an address's transactions
// comes from an archive.
func Timeout(method string, usual time.Duration) time.Duration {
	if method == "getBlock" || method == "getSignaturesForAddress" {
		return 4 * usual
	}
	return usual
}

type request struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params,omitempty"`
}

func (c *Client) attempt(ctx context.Context, method string, params []any, decode decoder) error {
	return c.post(ctx, method, request{Version: "2.0", ID: 1, Method: method, Params: params}, func(resp *http.Response, body *boundedBody) error {
		return c.withRetryAfter(c.decode(method, resp.StatusCode, body, decode), resp)
	})
}

// post makes an HTTP request with a call, or a batch of calls, of the method.
func (c *Client) post(parent context.Context, method string, content any, decode func(*http.Response, *boundedBody) error) error {
	body, err := json.Marshal(content, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	timeout := Timeout(method, c.timeout)
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint().String(), bytes.NewReader(body))
	if err != nil {
		return transportFault(parent, ctx, method, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return transportFault(parent, ctx, method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	defer drain(resp.Body, c.unreadTimeout, cancel)
	answer := &boundedBody{from: resp.Body}
	err = decode(resp, answer)
	if answer.err != nil {
		return transportFault(parent, ctx, method, answer.err)
	}
	return err
}

// withRetryAfter adds the pause that the endpoint asks for to the error of a call whose outcome is unknown.
func (c *Client) withRetryAfter(err error, resp *http.Response) error {
	var u *onchain.Unavailable
	if errors.As(err, &u) {
		u.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), c.now())
	}
	return err
}

const (
	// maxUnread and unreadTimeout bound what drain reads.
	maxUnread     = 64 << 10
	unreadTimeout = 100 * time.Millisecond
)

// drain reads what is left of an answer, such as the page of an endpoint that refuses calls: net/http
// would otherwise end the connection, and each refused call would begin with a handshake. It gives up
// on an answer that does not end, by ending its call.
func drain(body io.Reader, timeout time.Duration, end func()) {
	giveUp := time.AfterFunc(timeout, end)
	defer giveUp.Stop()
	_, _ = io.CopyN(io.Discard, body, maxUnread) // the answer has been decoded, or is of no use
}
