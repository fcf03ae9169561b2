package router

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
		"cut before the answer": {handler: cut(""), want: swap.FaultConnection, calls: 1},
		"cut within the answer": {handler: cut("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + goodQuote[:100]), want: swap.FaultConnection, calls: 1},
		"cut within a chunk":    {handler: cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n" + goodQuote[:100]), want: swap.FaultConnection, calls: 1},
		"no HTTP":               {handler: cut("SSH-2.0-OpenSSH_9.2\r\n"), want: swap.FaultConnection, calls: 1},
		"an endless header":     {handler: cut("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), want: swap.FaultConnection, calls: 1},
		"never an answer": {
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
			_, err := newClient(t, Options{BaseURL: target, Timeout: timeout}).Quote(t.Context(), question)
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

// TestAnUnknownCertificateIsNotAccepted: otherwise anybody on the network path could answer.
func TestAnUnknownCertificateIsNotAccepted(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	s.StartTLS()
	defer s.Close()
	_, err := newClient(t, Options{BaseURL: s.URL}).Quote(t.Context(), question)
	if err == nil || !strings.Contains(err.Error(), "connection: TLS certificate not accepted") {
		t.Errorf("error is %v, want that the certificate is not accepted", err)
	}
}

// TestADeadIdleConnectionCostsNoAnswer: servers close idle connections at any time, and a client
// notices that only when it uses one.
func TestADeadIdleConnectionCostsNoAnswer(t *testing.T) {
	t.Parallel()
	ask := map[string]func(*Client) error{
		"quote":        func(c *Client) error { _, err := c.Quote(t.Context(), question); return err },
		"instructions": func(c *Client) error { _, err := c.Instructions(t.Context(), givenQuote(t), user); return err },
	}
	for name, do := range ask {
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
			seen := &observed{}
			c := newClient(t, Options{BaseURL: s.URL, Observer: seen})
			for range 3 {
				if err := do(c); err != nil {
					t.Error(err)
				}
			}
			// The first call uses a new connection. Each later one first tries the previous
			// call's.
			if got := s.calls(); got != 5 {
				t.Errorf("%d calls, want 5", got)
			}
			if diff := cmp.Diff([]string{name + " ok", name + " ok", name + " ok"}, seen.all()); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHTTPClient(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var protocols []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		protocols = append(protocols, r.Proto)
		mu.Unlock()
		_, _ = io.WriteString(w, goodInstructions) // a client that hangs up is a failure of the test anyway
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	h := NewHTTPClient()
	transport, ok := h.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("transport is %T", h.Transport)
	}
	if transport.Proxy != nil {
		t.Error("a proxy of the environment would be used")
	}
	trusting, ok := s.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatalf("the server's is %T", s.Client().Transport)
	}
	transport.TLSClientConfig = trusting.TLSClientConfig.Clone()
	transport.TLSClientConfig.NextProtos = nil
	c := newClient(t, Options{BaseURL: s.URL, HTTP: h})
	for range 2 {
		if _, err := c.Instructions(t.Context(), givenQuote(t), user); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"HTTP/2.0", "HTTP/2.0"}, protocols); diff != "" {
		t.Errorf("protocols (-want +got):\n%s", diff)
	}
}

// TestARedirectIsNotFollowed: whatever HTTP client is configured, a redirect is not followed,
// because the key would be sent along.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	other := newServer(t, reply{body: goodQuote})
	s := newServer(t, reply{status: http.StatusTemporaryRedirect, header: map[string]string{"Location": other.URL}})
	given := &http.Client{}
	_, err := newClient(t, Options{BaseURL: s.URL, APIKey: "k", HTTP: given}).Quote(t.Context(), question)
	if describe(err) != swap.FaultRejected || other.calls() != 0 {
		t.Errorf("error is %v, and the other server was asked %d times", err, other.calls())
	}
	if given.CheckRedirect != nil {
		t.Error("the given client is changed")
	}
}

// inMemory makes a client of a router in memory, without a network.
func inMemory(t *testing.T, o Options) (*Client, *memory, *observed) {
	t.Helper()
	m, seen := &memory{}, &observed{}
	m.says(reply{body: goodQuote})
	o.BaseURL, o.HTTP, o.Observer = "http://router.example", &http.Client{Transport: m}, seen
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Second
	}
	return newClient(t, o), m, seen
}

func quoteKind(t *testing.T, c *Client) string {
	t.Helper()
	_, err := c.Quote(t.Context(), question)
	return describe(err)
}

func TestWhichFailuresOpenTheBreaker(t *testing.T) {
	t.Parallel()
	left, leave := context.WithCancel(t.Context())
	leave()
	tests := map[string]struct {
		answer reply
		ctx    context.Context
		want   outbound.State
	}{
		"server errors":              {reply{status: 502}, nil, outbound.Open},
		"a limit of requests":        {reply{status: 429}, nil, outbound.Open},
		"refused credentials":        {reply{status: 401}, nil, outbound.Open},
		"what is no quote":           {reply{body: "<html>"}, nil, outbound.Open},
		"answers to another request": {reply{body: strings.Replace(goodQuote, "100000000", "200000000", 1)}, nil, outbound.Open},
		"not that there is no route": {reply{status: 400, body: `{"errorCode":"NO_ROUTES_FOUND"}`}, nil, outbound.Closed},
		"not callers who leave":      {reply{status: 502}, left, outbound.Closed},
		"not good quotes":            {reply{body: goodQuote}, nil, outbound.Closed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, m, _ := inMemory(t, Options{})
			m.says(test.answer)
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			} else {
				m.does(func(r *http.Request) (*http.Response, error) { return nil, r.Context().Err() })
			}
			for range 20 {
				_, _ = c.Quote(ctx, question) // only the breaker's state matters here
			}
			if got := c.breaker.State(); got != test.want {
				t.Errorf("breaker is %s, want %s", got, test.want)
			}
		})
	}
}

func TestTheBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &lockedBuffer{}
		c, m, seen := inMemory(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		m.says(reply{status: 503})
		for range 5 {
			quoteKind(t, c)
		}
		_, err := c.Quote(t.Context(), question)
		var u *swap.RouterUnavailable
		if !errors.As(err, &u) || u.Kind != swap.FaultBreakerOpen || u.RetryAfter != 500*time.Millisecond {
			t.Errorf("error is %#v, want an open breaker, to be asked again in 500 ms", err)
		}
		if _, err := c.Instructions(t.Context(), givenQuote(t), user); describe(err) != swap.FaultBreakerOpen {
			t.Errorf("instructions: error is %v, want an open breaker: it is one router", err)
		}
		if m.calls() != 5 {
			t.Errorf("%d calls, want 5", m.calls())
		}
		time.Sleep(500 * time.Millisecond)
		m.says(reply{body: goodQuote})
		if got := quoteKind(t, c); got != "ok" || c.breaker.State() != outbound.Closed {
			t.Errorf("after the delay: %s, breaker %s, want an answer and a closed one", got, c.breaker.State())
		}
		want := []string{
			"quote server_error", "quote server_error", "quote server_error", "quote server_error", "quote server_error",
			"quote skipped breaker_open", "instructions skipped breaker_open", "quote ok",
		}
		if diff := cmp.Diff(want, seen.all()); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		for _, want := range []string{`level=WARN msg="swap router breaker opened" last_error=server_error`, `level=INFO msg="swap router breaker closed"`} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("the log has not one line %s:\n%s", want, log)
			}
		}
	})
}

// TestRetryAfterPausesTheRouter: one Retry-After pauses the calls, but for 15 s at most.
func TestRetryAfterPausesTheRouter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{"3": 3 * time.Second, "3600": 15 * time.Second} {
		t.Run("for "+header, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, m, _ := inMemory(t, Options{})
				m.says(reply{status: 429, header: map[string]string{"Retry-After": header}})
				if got := quoteKind(t, c); got != swap.FaultRateLimited {
					t.Fatalf("error is %s", got)
				}
				m.says(reply{body: goodQuote})
				time.Sleep(want - time.Millisecond)
				if got := quoteKind(t, c); got != swap.FaultBreakerOpen {
					t.Errorf("error is %s before the pause is over", got)
				}
				time.Sleep(time.Millisecond)
				if got := quoteKind(t, c); got != "ok" {
					t.Errorf("error is %s after the pause", got)
				}
			})
		})
	}
}

// TestAProbeWhoseCallerStoppedCountsAsNoOutcome: a probe whose caller stops waiting has no outcome,
// so the next call is the probe.
func TestAProbeWhoseCallerStoppedCountsAsNoOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := inMemory(t, Options{})
		m.says(reply{status: 503})
		for range 5 {
			quoteKind(t, c)
		}
		time.Sleep(500 * time.Millisecond)
		m.does(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Quote(ctx, question); describe(err) != swap.FaultCancelled {
			t.Errorf("error is %v, want cancelled", err)
		}
		m.says(reply{body: goodQuote})
		if got := quoteKind(t, c); got != "ok" {
			t.Errorf("error is %s, want an answer", got)
		}
	})
}

// TestATimedOutCallerRevealsAHangingRouter: a caller's deadline counts as a failure of the
// router when the call had a second or more.
func TestATimedOutCallerRevealsAHangingRouter(t *testing.T) {
	t.Parallel()
	for patience, want := range map[time.Duration]outbound.State{time.Second: outbound.Open, 900 * time.Millisecond: outbound.Closed} {
		t.Run("of "+patience.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, m, _ := inMemory(t, Options{})
				m.does(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					_, _ = c.Quote(ctx, question) // it is cancelled
					cancel()
				}
				if got := c.breaker.State(); got != want {
					t.Errorf("breaker is %s, want %s", got, want)
				}
			})
		})
	}
}

func TestCallsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, seen := inMemory(t, Options{Parallel: 2})
		m.does(func(r *http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second)
			return response(reply{body: goodQuote}), r.Context().Err()
		})
		start := time.Now()
		type end struct {
			Kind  string
			After time.Duration
		}
		ends := make(chan end, 5)
		for range 5 {
			go func() {
				kind := quoteKind(t, c)
				ends <- end{kind, time.Since(start)}
			}()
		}
		var got []end
		for range 5 {
			got = append(got, <-ends)
		}
		// Two run at once and two after them; the fifth waits its 3 s in vain.
		want := []end{{"ok", 2 * time.Second}, {"ok", 2 * time.Second}, {"busy", 3 * time.Second}, {"ok", 4 * time.Second}, {"ok", 4 * time.Second}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if m.calls() != 4 {
			t.Errorf("%d calls, want 4", m.calls())
		}
		if diff := cmp.Diff([]string{"quote ok", "quote ok", "quote skipped busy", "quote ok", "quote ok"}, seen.all()); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		if got := quoteKind(t, c); got != "ok" {
			t.Errorf("a place is lost: %s", got)
		}
	})
}

// TestWhoLeavesTheQueueGivesNoPlaceAway: a caller that stops waiting for a place neither
// releases nor keeps one.
func TestWhoLeavesTheQueueGivesNoPlaceAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m, seen := inMemory(t, Options{Parallel: 1})
		m.does(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return response(reply{body: goodQuote}), nil
		})
		first := make(chan string)
		go func() { first <- quoteKind(t, c) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Quote(ctx, question); describe(err) != swap.FaultCancelled || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want cancelled, because of the deadline", err)
		}
		if got := <-first; got != "ok" {
			t.Errorf("the first ends with %s", got)
		}
		if got := quoteKind(t, c); got != "ok" {
			t.Errorf("the last ends with %s", got)
		}
		if diff := cmp.Diff([]string{"quote skipped cancelled", "quote ok", "quote ok"}, seen.all()); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
	})
}

func TestRequestsASecondAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := inMemory(t, Options{RequestsPerSecond: 2})
		start := time.Now()
		for range 6 {
			if got := quoteKind(t, c); got != "ok" {
				t.Errorf("error is %s", got)
			}
		}
		if took := time.Since(start).Round(100 * time.Millisecond); took != 2*time.Second {
			t.Errorf("six took %s, want 2 s: two at once, and two a second", took)
		}
		c, m, _ := inMemory(t, Options{RequestsPerSecond: 0.1})
		if first, second := quoteKind(t, c), quoteKind(t, c); first != "ok" || second != swap.FaultBusy {
			t.Errorf("calls end with %s and %s, want an answer, and busy: 10 s are more than its patience", first, second)
		}
		if m.calls() != 1 || c.breaker.State() != outbound.Closed {
			t.Errorf("%d calls and a breaker that is %s, want 1 and closed", m.calls(), c.breaker.State())
		}
	})
}
