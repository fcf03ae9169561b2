package router

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/swap"
)

// closedAddress is an address on which nothing listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	return l.Addr().String()
}

// hijack takes over the connection of a call.
func hijack(t *testing.T, w http.ResponseWriter) net.Conn {
	t.Helper()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		panic(http.ErrAbortHandler)
	}
	return conn
}

func TestConnectionsThatFail(t *testing.T) {
	t.Parallel()
	cut := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn := hijack(t, w)
			_, _ = io.WriteString(conn, text) // the client may be gone
			_ = conn.Close()
		}
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		url     func(*server) string // nil for the server's own
		want    string
		detail  string
		calls   int
	}{
		"cut before the answer":      {handler: cut(""), want: swap.FaultConnection, calls: 1},
		"cut within the answer":      {handler: cut("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + goodQuote[:100]), want: swap.FaultConnection, calls: 1},
		"cut within a chunk":         {handler: cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n" + goodQuote[:100]), want: swap.FaultConnection, calls: 1},
		"an answer that is not HTTP": {handler: cut("SSH-2.0-OpenSSH_9.2\r\n"), want: swap.FaultConnection, calls: 1},
		"an endless header":          {handler: cut("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), want: swap.FaultConnection, calls: 1},
		"no answer": {
			handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			want:    swap.FaultTimeout, calls: 1,
		},
		"an answer that stops halfway": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, goodQuote[:50]) // a client that hangs up is part of the test
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
			want: swap.FaultTimeout, calls: 1,
		},
		"no listener": {
			url:  func(*server) string { return "http://" + closedAddress(t) },
			want: swap.FaultConnection, detail: "connection refused",
		},
		"a server without TLS": {
			handler: cut("HTTP/1.1 400 Bad Request\r\n\r\n"), url: func(s *server) string { return strings.Replace(s.URL, "http:", "https:", 1) },
			want: swap.FaultConnection,
		},
		"a name that does not resolve": {
			url:  func(*server) string { return "http://router.invalid" },
			want: swap.FaultConnection, detail: "host name not resolved",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, test.handler)
			target := s.URL
			if test.url != nil {
				target = test.url(s)
			}
			timeout := 30 * time.Second
			if test.want == swap.FaultTimeout {
				timeout = 300 * time.Millisecond
			}
			_, err := newClient(t, Options{BaseURL: target, Timeout: timeout}).Quote(t.Context(), quoteRequest)
			var u *swap.RouterUnavailable
			if !errors.As(err, &u) || u.Kind != test.want || u.Detail != test.detail {
				t.Errorf("error is %v, want %s %q", err, test.want, test.detail)
			}
			// On a busy machine the timeout may end the call before it reaches the server.
			if got := s.calls(); got > test.calls || got < test.calls && test.want != swap.FaultTimeout {
				t.Errorf("%d calls, want %d", got, test.calls)
			}
		})
	}
}

// TestUnknownCertificateIsRejected: otherwise anybody on the network path could answer.
func TestUnknownCertificateIsRejected(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	s.StartTLS()
	defer s.Close()
	_, err := newClient(t, Options{BaseURL: s.URL}).Quote(t.Context(), quoteRequest)
	if err == nil || !strings.Contains(err.Error(), "connection: TLS certificate not accepted") {
		t.Errorf("error is %v, want TLS certificate not accepted", err)
	}
}

// TestCallIsRepeatedAfterDeadIdleConnection: servers close idle connections at any
// time, and a client notices that only when it uses the connection.
func TestCallIsRepeatedAfterDeadIdleConnection(t *testing.T) {
	t.Parallel()
	calls := map[string]func(*Client) error{
		"quote":        func(c *Client) error { _, err := c.Quote(t.Context(), quoteRequest); return err },
		"instructions": func(c *Client) error { _, err := c.Instructions(t.Context(), decodedQuote(t), user); return err },
	}
	for name, do := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			used := map[string]int{}
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				used[r.RemoteAddr]++
				again := used[r.RemoteAddr] > 1
				mu.Unlock()
				if again {
					_ = hijack(t, w).Close()
					return
				}
				body := goodQuote
				if r.Method == http.MethodPost {
					body = goodInstructions
				}
				_, _ = io.WriteString(w, body) // a client that hangs up is part of the tests
			})
			observer := &recorder{}
			c := newClient(t, Options{BaseURL: s.URL, Observer: observer})
			for range 3 {
				if err := do(c); err != nil {
					t.Error(err)
				}
			}
			// The first call uses a new connection. Each later call first tries the
			// connection of the previous call.
			if got := s.calls(); got != 5 {
				t.Errorf("%d calls, want 5", got)
			}
			if diff := cmp.Diff([]string{name + " ok", name + " ok", name + " ok"}, observer.all()); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHTTPClientUsesHTTP2AndNoProxy(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var protocols []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		protocols = append(protocols, r.Proto)
		mu.Unlock()
		_, _ = io.WriteString(w, goodInstructions) // a client that hangs up is a failure of the test anyway
	}))
	var connections atomic.Int64
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	h := NewHTTPClient()
	transport, ok := h.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("transport is %T", h.Transport)
	}
	if transport.Proxy != nil {
		t.Error("the client uses the proxy of the environment, want none")
	}
	trusting, ok := s.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatalf("the transport of the server's client is %T", s.Client().Transport)
	}
	transport.TLSClientConfig = trusting.TLSClientConfig.Clone()
	transport.TLSClientConfig.NextProtos = nil
	c := newClient(t, Options{BaseURL: s.URL, HTTP: h})
	for range 2 {
		if _, err := c.Instructions(t.Context(), decodedQuote(t), user); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"HTTP/2.0", "HTTP/2.0"}, protocols); diff != "" {
		t.Errorf("protocols (-want +got):\n%s", diff)
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("two calls used %d connections, want 1", got)
	}
}

// TestRedirectIsNotFollowed: whatever HTTP client is configured, a redirect is not followed,
// because the key would be sent along.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	other := newServer(t, reply{body: goodQuote})
	s := newServer(t, reply{status: http.StatusTemporaryRedirect, header: map[string]string{"Location": other.URL}})
	client := &http.Client{}
	_, err := newClient(t, Options{BaseURL: s.URL, APIKey: "k", HTTP: client}).Quote(t.Context(), quoteRequest)
	if describe(err) != swap.FaultRejected || other.calls() != 0 {
		t.Errorf("error is %v, want rejected; the other server received %d calls, want 0", err, other.calls())
	}
	if client.CheckRedirect != nil {
		t.Error("New changed the configured HTTP client")
	}
}

// newMemoryClient makes a client of a router in memory.
func newMemoryClient(t *testing.T, o Options) (*Client, *memoryRouter, *recorder) {
	t.Helper()
	m, observer := &memoryRouter{}, &recorder{}
	m.setReply(reply{body: goodQuote})
	o.BaseURL, o.HTTP, o.Observer = "http://router.example", &http.Client{Transport: m}, observer
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Second
	}
	return newClient(t, o), m, observer
}

func quoteKind(t *testing.T, c *Client) string {
	t.Helper()
	_, err := c.Quote(t.Context(), quoteRequest)
	return describe(err)
}

func TestWhichFailuresOpenTheBreaker(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		answer reply
		ctx    context.Context
		want   outbound.State
	}{
		"server errors":                   {reply{status: 502}, nil, outbound.Open},
		"a limit of requests":             {reply{status: 429}, nil, outbound.Open},
		"refused credentials":             {reply{status: 401}, nil, outbound.Open},
		"answers that are not quotes":     {reply{body: "<html>"}, nil, outbound.Open},
		"answers to another request":      {reply{body: strings.Replace(goodQuote, "100000000", "200000000", 1)}, nil, outbound.Open},
		"refusals without a route do not": {reply{status: 400, body: `{"errorCode":"NO_ROUTES_FOUND"}`}, nil, outbound.Closed},
		"callers who stop waiting do not": {reply{status: 502}, cancelled, outbound.Closed},
		"good quotes do not":              {reply{body: goodQuote}, nil, outbound.Closed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, m, _ := newMemoryClient(t, Options{})
			m.setReply(test.answer)
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			} else {
				m.setAnswer(func(r *http.Request) (*http.Response, error) { return nil, r.Context().Err() })
			}
			for range 20 {
				_, _ = c.Quote(ctx, quoteRequest) // only the breaker's state matters here
			}
			if got := c.breaker.State(); got != test.want {
				t.Errorf("breaker is %s, want %s", got, test.want)
			}
		})
	}
}

func TestBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &lockedBuffer{}
		c, m, observer := newMemoryClient(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		m.setReply(reply{status: 503})
		for range 5 {
			quoteKind(t, c)
		}
		_, err := c.Quote(t.Context(), quoteRequest)
		var u *swap.RouterUnavailable
		if !errors.As(err, &u) || u.Kind != swap.FaultBreakerOpen || u.RetryAfter != 500*time.Millisecond {
			t.Errorf("error is %#v, want breaker_open with RetryAfter 500 ms", err)
		}
		if _, err := c.Instructions(t.Context(), decodedQuote(t), user); describe(err) != swap.FaultBreakerOpen {
			t.Errorf("instructions: error is %v, want breaker_open, because both calls share the breaker", err)
		}
		if m.calls() != 5 {
			t.Errorf("%d calls, want 5", m.calls())
		}
		time.Sleep(500 * time.Millisecond)
		m.setReply(reply{body: goodQuote})
		if got := quoteKind(t, c); got != "ok" || c.breaker.State() != outbound.Closed {
			t.Errorf("after the delay: %s, breaker %s; want ok and a closed breaker", got, c.breaker.State())
		}
		want := []string{
			"quote server_error", "quote server_error", "quote server_error", "quote server_error", "quote server_error",
			"quote skipped breaker_open", "instructions skipped breaker_open", "quote ok",
		}
		if diff := cmp.Diff(want, observer.all()); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		for _, want := range []string{`level=WARN msg="swap router breaker opened" router=r last_error=server_error`, `level=INFO msg="swap router breaker closed" router=r`} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("the log does not have exactly one line %s:\n%s", want, log)
			}
		}
	})
}

// TestRetryAfterPausesTheRouter: one Retry-After pauses all calls, for at most 15 s.
func TestRetryAfterPausesTheRouter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{"3": 3 * time.Second, "3600": 8 * time.Second} {
		t.Run("for "+header, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, m, _ := newMemoryClient(t, Options{})
				m.setReply(reply{status: 429, header: map[string]string{"Retry-After": header}})
				if got := quoteKind(t, c); got != swap.FaultRateLimited {
					t.Fatalf("error is %s", got)
				}
				m.setReply(reply{body: goodQuote})
				time.Sleep(want - time.Millisecond)
				if got := quoteKind(t, c); got != swap.FaultBreakerOpen {
					t.Errorf("error is %s before the end of the pause, want breaker_open", got)
				}
				time.Sleep(time.Millisecond)
				if got := quoteKind(t, c); got != "ok" {
					t.Errorf("error is %s after the pause, want ok", got)
				}
			})
		})
	}
}

// TestCancelledProbeHasNoOutcome: when the caller of a probe stops waiting, the next
// call is the probe.
func TestCancelledProbeHasNoOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := newMemoryClient(t, Options{})
		m.setReply(reply{status: 503})
		for range 5 {
			quoteKind(t, c)
		}
		time.Sleep(500 * time.Millisecond)
		m.setAnswer(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Quote(ctx, quoteRequest); describe(err) != swap.FaultCancelled {
			t.Errorf("error is %v, want cancelled", err)
		}
		m.setReply(reply{body: goodQuote})
		if got := quoteKind(t, c); got != "ok" {
			t.Errorf("error is %s, want an answer", got)
		}
	})
}

// TestCallersDeadlineCountsAsFailureAfterOneSecond: a caller's deadline counts as a
// failure of the router if the call ran for a second or more.
func TestCallersDeadlineCountsAsFailureAfterOneSecond(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]outbound.State{time.Second: outbound.Open, 900 * time.Millisecond: outbound.Closed} {
		t.Run("of "+timeout.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, m, _ := newMemoryClient(t, Options{})
				m.setAnswer(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), timeout)
					_, _ = c.Quote(ctx, quoteRequest) // it is cancelled
					cancel()
				}
				if got := c.breaker.State(); got != want {
					t.Errorf("breaker is %s, want %s", got, want)
				}
			})
		})
	}
}

func TestConcurrentCallsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, observer := newMemoryClient(t, Options{Parallel: 2})
		m.setAnswer(func(r *http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second)
			return response(reply{body: goodQuote}), r.Context().Err()
		})
		start := time.Now()
		type callResult struct {
			Kind  string
			After time.Duration
		}
		results := make(chan callResult, 5)
		for range 5 {
			go func() {
				kind := quoteKind(t, c)
				results <- callResult{kind, time.Since(start)}
			}()
		}
		var got []callResult
		for range 5 {
			got = append(got, <-results)
		}
		// Two calls run at once and two after them; the fifth times out after 3 s.
		want := []callResult{{"ok", 2 * time.Second}, {"ok", 2 * time.Second}, {"busy", 3 * time.Second}, {"ok", 4 * time.Second}, {"ok", 4 * time.Second}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if m.calls() != 4 {
			t.Errorf("%d calls, want 4", m.calls())
		}
		if diff := cmp.Diff([]string{"quote ok", "quote ok", "quote skipped busy", "quote ok", "quote ok"}, observer.all()); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		if got := quoteKind(t, c); got != "ok" {
			t.Errorf("after the calls: %s, want ok with free capacity", got)
		}
	})
}

// TestCancelledWaitKeepsCapacityUnchanged: a caller that stops waiting for capacity
// neither takes nor frees any.
func TestCancelledWaitKeepsCapacityUnchanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, observer := newMemoryClient(t, Options{Parallel: 1})
		m.setAnswer(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return response(reply{body: goodQuote}), nil
		})
		first := make(chan string)
		go func() { first <- quoteKind(t, c) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Quote(ctx, quoteRequest); describe(err) != swap.FaultCancelled || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want cancelled, because of the deadline", err)
		}
		if got := <-first; got != "ok" {
			t.Errorf("the first call ends with %s, want ok", got)
		}
		if got := quoteKind(t, c); got != "ok" {
			t.Errorf("the last call ends with %s, want ok", got)
		}
		if diff := cmp.Diff([]string{"quote skipped cancelled", "quote ok", "quote ok"}, observer.all()); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
	})
}

// perSecond is a budget of n calls a second.
func perSecond(n float64) func(context.Context) (time.Duration, error) {
	limiter := rate.NewLimiter(rate.Limit(n), int(math.Ceil(n)))
	return func(context.Context) (time.Duration, error) {
		r := limiter.Reserve()
		wait := r.Delay()
		if wait > 0 {
			r.Cancel()
		}
		return wait, nil
	}
}

func TestCallsWithoutBudgetAreNotMade(t *testing.T) {
	t.Parallel()
	c, m, _ := newMemoryClient(t, Options{Take: func(context.Context) (time.Duration, error) { return 0, errors.New("no database") }})
	if got := quoteKind(t, c); got != swap.FaultBusy || m.calls() != 0 {
		t.Errorf("the call ends with %s after %d requests, want busy and none", got, m.calls())
	}
}

func TestRequestsPerSecondAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := newMemoryClient(t, Options{Take: perSecond(2)})
		start := time.Now()
		for range 6 {
			if got := quoteKind(t, c); got != "ok" {
				t.Errorf("error is %s", got)
			}
		}
		if took := time.Since(start).Round(100 * time.Millisecond); took != 2*time.Second {
			t.Errorf("six calls took %s, want 2 s: two at once, then two a second", took)
		}
		c, m, _ := newMemoryClient(t, Options{Take: perSecond(0.1)})
		if first, second := quoteKind(t, c), quoteKind(t, c); first != "ok" || second != swap.FaultBusy {
			t.Errorf("calls end with %s and %s, want ok and busy, because 10 s are more than the timeout", first, second)
		}
		if m.calls() != 1 || c.breaker.State() != outbound.Closed {
			t.Errorf("%d calls and a breaker that is %s, want 1 and closed", m.calls(), c.breaker.State())
		}
	})
}
