package httpapi_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// countConnections starts the relay's own server. It returns the server's URL, a client that keeps so
// many connections, and the number of connections so far.
func countConnections(t *testing.T, d *domains, keep int) (url string, c *http.Client, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	s := httptest.NewUnstartedServer(nil)
	s.Config = httpapi.NewServer("", newFixture(t, d, func(o *httpapi.Options) { o.Now = time.Now }).handler, time.Minute, slog.New(slog.DiscardHandler))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: keep}
	t.Cleanup(transport.CloseIdleConnections)
	return s.URL, &http.Client{Transport: transport}, connections
}

// do sends a request and reads the answer to its end.
func do(t *testing.T, c *http.Client, method, url, body string, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := c.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = a.Body.Close() }()
	_, _ = io.Copy(io.Discard, a.Body)
	return a.StatusCode
}

func TestAnswersKeepTheirConnection(t *testing.T) {
	t.Parallel()
	refuses := func(code refusal.Code) *domains { return submitReturns(nil, refusal.New(code, "no")) }
	leaves := publishedLeaves(5000)
	tests := map[string]struct {
		domains            *domains
		method, path, body string
		header             []string
		want               int
	}{
		"a submission":              {submitReturns(completed(), nil), "POST", "/transact", transactBody(), nil, 200},
		"a stale root":              {refuses(refusal.RootNotFound), "POST", "/transact", transactBody(), nil, 400},
		"a busy pool":               {refuses(refusal.PoolBusy), "POST", "/transact", transactBody(), nil, 503},
		"no JSON":                   {&domains{}, "POST", "/transact", "{", nil, 400},
		"another content type":      {&domains{}, "POST", "/transact", strings.Repeat("a", 4000), []string{"Content-Type", "text/plain"}, 415},
		"a route that is not there": {&domains{}, "POST", "/nowhere", strings.Repeat("a", 4000), nil, 404},
		"another method":            {&domains{}, "PUT", "/transact", strings.Repeat("a", 4000), nil, 405},
		"the list":                  {leaves, "GET", "/commitments", "", nil, 200},
		"the list with zstd":        {leaves, "GET", "/commitments", "", []string{"Accept-Encoding", "zstd"}, 200},
		"the list's head":           {leaves, "HEAD", "/commitments", "", nil, 200},
		"the list from its end":     {leaves, "GET", "/commitments?from_index=5000", "", nil, 200},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, c, connections := countConnections(t, tt.domains, 1)
			for range 20 {
				if got := do(t, c, tt.method, url+tt.path, tt.body, tt.header...); got != tt.want {
					t.Fatalf("status %d, want %d", got, tt.want)
				}
			}
			if got := connections.Load(); got != 1 {
				t.Errorf("20 requests used %d connections, want 1", got)
			}
		})
	}
}

func TestConcurrentRequestsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	const clients, rounds = 32, 5
	var arrived, release chan struct{}
	d := &domains{submit: func(context.Context, submission.Request) (*submission.Submission, error) {
		arrived <- struct{}{}
		<-release
		return completed(), nil
	}}
	url, c, connections := countConnections(t, d, clients)
	for range rounds {
		arrived, release = make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		for range clients {
			all.Go(func() { do(t, c, http.MethodPost, url+"/transact", transactBody()) })
		}
		for range clients {
			<-arrived // all are under way
		}
		close(release)
		all.Wait()
	}
	if got := connections.Load(); got != clients {
		t.Errorf("%d rounds of %d requests used %d connections, want %d", rounds, clients, got, clients)
	}
}
