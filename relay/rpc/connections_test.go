package rpc

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

// countingNode gives one answer to every call. It counts the connections, and the calls that did
// not come over HTTP/2.
type countingNode struct {
	*httptest.Server
	connections, overHTTP1 atomic.Int64
	// arrived gets a value for each call, whose answer waits until release is closed; nil for none.
	arrived chan struct{}
	release chan struct{}
}

func newCountingNode(t *testing.T, https bool, status int, body string) (*countingNode, *Client) {
	t.Helper()
	n := &countingNode{}
	n.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.ProtoMajor < 2 {
			n.overHTTP1.Add(1)
		}
		if n.arrived != nil {
			n.arrived <- struct{}{}
			<-n.release
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	n.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			n.connections.Add(1)
		}
	}
	h := NewHTTPClient()
	if https {
		n.EnableHTTP2 = true
		n.StartTLS()
		trusting := n.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		trusting.NextProtos = nil
		h.Transport.(*http.Transport).TLSClientConfig = trusting
	} else {
		n.Start()
	}
	t.Cleanup(n.Close)
	t.Cleanup(h.CloseIdleConnections)
	c := newClient(t, Options{URL: n.URL, HTTP: h, Timeout: time.Minute})
	c.unreadTimeout = time.Minute // on a busy machine the rest of an answer may take long
	return n, c
}

const balanceAnswer = `{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":5},"value":7}}`

func TestCallsOneAfterTheOtherShareAConnection(t *testing.T) {
	t.Parallel()
	page := "<html>" + strings.Repeat("a page of a proxy, ", 1000)
	tests := map[string]struct {
		status int
		body   string
	}{
		"a result":                        {200, balanceAnswer},
		"a result with a line after it":   {200, balanceAnswer + "\n"},
		"a JSON-RPC error":                {200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid param"}}`},
		"a JSON-RPC error with HTTP 400":  {400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid param"}}`},
		"a result of another kind":        {200, `{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":"x"},"value":[1,2]}}`},
		"HTTP 429":                        {429, `{"error":"slow down"}`},
		"HTTP 429 with a page":            {429, page},
		"HTTP 503 with a page":            {503, page},
		"HTTP 502 without a body":         {502, ""},
		"HTTP 403 with a page":            {403, page},
		"a page instead of an answer":     {200, page},
		"two answers instead of one":      {200, balanceAnswer + balanceAnswer},
		"a result and what is not needed": {200, strings.Replace(balanceAnswer, `}}`, `},"more":"`+strings.Repeat("x", 10_000)+`"}`, 1)},
	}
	for name, test := range tests {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+" over "+scheme, func(t *testing.T) {
				t.Parallel()
				n, c := newCountingNode(t, scheme == "https", test.status, test.body)
				for range 20 {
					_, _, _ = c.Balance(t.Context(), solana.PublicKey{1}, 0) // other tests check the answer
				}
				if got := n.connections.Load(); got != 1 {
					t.Errorf("20 calls used %d connections, want 1", got)
				}
				if got := n.overHTTP1.Load(); scheme == "https" && got > 0 {
					t.Errorf("%d calls of 20 were not over HTTP/2, which the endpoint offers", got)
				}
			})
		}
	}
}

// As many calls as a busy relay makes are under way at the same time, again and again.
func TestConcurrentCallsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	const concurrent, bursts = 64, 5
	tests := map[string]struct {
		https bool
		want  int64
	}{
		"over HTTP/1.1, each has one": {false, concurrent},
		"over HTTP/2, all share one":  {true, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, c := newCountingNode(t, test.https, 200, balanceAnswer)
			if _, _, err := c.Balance(t.Context(), solana.PublicKey{1}, 0); err != nil {
				t.Fatal(err)
			}
			n.arrived = make(chan struct{})
			for range bursts {
				n.release = make(chan struct{})
				var calls sync.WaitGroup
				for range concurrent {
					calls.Go(func() {
						if _, _, err := c.Balance(t.Context(), solana.PublicKey{1}, 0); err != nil {
							t.Error(err)
						}
					})
				}
				for range concurrent {
					<-n.arrived // all are under way
				}
				close(n.release)
				calls.Wait()
			}
			if got := n.connections.Load(); got != test.want {
				t.Errorf("%d bursts of %d calls used %d connections, want %d", bursts, concurrent, got, test.want)
			}
		})
	}
}

// An endpoint that refuses a call, with an answer that does not end, holds up nobody.
func TestRefusalIsNotReadForEver(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	t.Cleanup(s.Close)
	c := newClient(t, Options{URL: s.URL, Timeout: time.Hour})
	_, _, err := c.Balance(t.Context(), solana.PublicKey{1}, 0)
	var u *onchain.Unavailable
	if !errors.As(err, &u) || u.Kind != onchain.KindRateLimited {
		t.Errorf("error is %v, want %s", err, onchain.KindRateLimited)
	}
	<-ended
}
