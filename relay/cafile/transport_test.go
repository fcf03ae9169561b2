package cafile_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/cafile"
)

// world is a client of a server, with a clock that the test moves.
type world struct {
	*testing.T
	path   string
	client *http.Client
	server *httptest.Server
	open   atomic.Int64 // the client's connections

	mu   sync.Mutex
	now  time.Time
	news []string // what Changed received
}

func newWorld(t *testing.T, content []byte, server *httptest.Server) *world {
	t.Helper()
	w := &world{T: t, path: filepath.Join(t.TempDir(), canary), server: server, now: time.Unix(1_800_000_000, 0)}
	w.client = &http.Client{Transport: &http.Transport{DialContext: w.dial}}
	testca.Write(t, w.path, content)
	err := cafile.Trust(w.client, cafile.Options{Path: w.path, Now: w.clock, Changed: func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		text := ""
		if err != nil {
			text, _, _ = strings.Cut(err.Error(), ": expected")
		}
		w.news = append(w.news, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// countedConn is a connection that is counted until it is closed.
type countedConn struct {
	net.Conn
	closed func()
}

func (c countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.open.Add(1)
	return countedConn{conn, sync.OnceFunc(func() { w.open.Add(-1) })}, nil
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// call calls the server and returns the protocol of its answer, or "refused" if its certificate
// is not accepted.
func (w *world) call() string {
	w.Helper()
	return w.get(w.server.URL)
}

func (w *world) get(url string) string {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	response, err := w.client.Do(request)
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return "refused"
	case err != nil:
		w.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		w.Fatal(err)
	}
	return response.Proto
}

func (w *world) check(want string) {
	w.Helper()
	if got := w.call(); got != want {
		w.Errorf("a call is answered with %s, want %s", got, want)
	}
}

func (w *world) checkNews(want ...string) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.news); diff != "" {
		w.Errorf("changes (-want +got):\n%s", diff)
	}
}

func answer(http.ResponseWriter, *http.Request) {}

func TestOnlyTheAuthoritiesInTheFileAreTrusted(t *testing.T) {
	t.Parallel()
	right, wrong := testca.New(t), testca.New(t)
	server := right.Serve(t, http.HandlerFunc(answer))
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	tests := map[string]struct {
		content []byte
		want    string
	}{
		"the right authority":             {right.PEM, "HTTP/2.0"},
		"the right authority and another": {slicesOf(wrong.PEM, right.PEM), "HTTP/2.0"},
		"the server's certificate itself": {leaf, "HTTP/2.0"},
		"the wrong authority":             {wrong.PEM, "refused"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newWorld(t, tc.content, server).check(tc.want)
		})
	}
	t.Run("a host that the certificate does not name", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, right.PEM, server)
		if got := w.get(strings.Replace(server.URL, "127.0.0.1", "localhost", 1)); got != "refused" {
			t.Errorf("a call is answered with %s, want a refusal", got)
		}
	})
}

func TestFileIsReadAgain(t *testing.T) {
	t.Parallel()
	right, wrong := testca.New(t), testca.New(t)
	server := right.Serve(t, http.HandlerFunc(answer))
	w := newWorld(t, wrong.PEM, server)
	w.check("refused")
	testca.Write(t, w.path, right.PEM)
	w.advance(4 * time.Second)
	w.check("refused") // it is not read that often
	w.advance(time.Second)
	w.check("HTTP/2.0")
	w.checkNews("")

	testca.Write(t, w.path, right.PEM) // the same content
	w.advance(5 * time.Second)
	w.check("HTTP/2.0")
	w.checkNews("")

	// A kept connection must not outlive the trust in its authority.
	testca.Write(t, w.path, wrong.PEM)
	w.advance(5 * time.Second)
	w.check("refused")
	w.checkNews("", "")
}

func TestLastAuthoritiesStayWhileTheFileIsUnusable(t *testing.T) {
	t.Parallel()
	right := testca.New(t)
	server := right.Serve(t, http.HandlerFunc(answer))
	tests := map[string]struct {
		damage func(t *testing.T, path string)
		want   string
	}{
		"the file is gone":                {func(t *testing.T, path string) { remove(t, path) }, "read ca file: file cannot be read: no such file or directory"},
		"the file has garbage":            {func(t *testing.T, path string) { testca.Write(t, path, []byte(canary)) }, "read ca file: file of 12 bytes has no certificate"},
		"the file is half of what it was": {func(t *testing.T, path string) { testca.Write(t, path, right.PEM[:len(right.PEM)/2]) }, "read ca file: part 1 of 1 of the file is incomplete"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, right.PEM, server)
			tc.damage(t, w.path)
			for range 3 {
				w.advance(5 * time.Second)
				w.client.CloseIdleConnections()
				w.check("HTTP/2.0")
			}
			w.checkNews(tc.want) // once
			testca.Write(t, w.path, right.PEM)
			w.advance(5 * time.Second)
			w.check("HTTP/2.0")
			w.checkNews(tc.want, "")
		})
	}
}

func TestOldConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	right, other := testca.New(t), testca.New(t)
	w := newWorld(t, right.PEM, right.Serve(t, http.HandlerFunc(answer)))
	w.check("HTTP/2.0")
	testca.Write(t, w.path, slicesOf(right.PEM, other.PEM))
	w.advance(5 * time.Second)
	w.check("HTTP/2.0")
	await(t, &w.open, 1)
	w.client.CloseIdleConnections()
	await(t, &w.open, 0)
}

func await(t *testing.T, open *atomic.Int64, want int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for open.Load() != want {
		select {
		case <-ctx.Done():
			t.Fatalf("%d connections are open, want %d", open.Load(), want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestManyCallsWhileTheFileChanges(t *testing.T) {
	t.Parallel()
	right, other := testca.New(t), testca.New(t)
	w := newWorld(t, right.PEM, right.Serve(t, http.HandlerFunc(answer)))
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 20 {
				w.check("HTTP/2.0")
			}
		})
	}
	for i := range 20 {
		testca.Write(t, w.path, slicesOf(right.PEM, [][]byte{nil, other.PEM}[i%2]))
		w.advance(5 * time.Second)
		w.check("HTTP/2.0")
	}
	running.Wait()
}

func TestTransportsThatWouldTrustOthersAreRefused(t *testing.T) {
	t.Parallel()
	file := testca.New(t).File(t)
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
	tests := map[string]struct {
		client http.Client
		path   string
		want   string
	}{
		"a transport that accepts any certificate": {http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, file, "accepts any certificate"},
		"a transport with its own TLS connections": {http.Client{Transport: &http.Transport{DialTLSContext: dial}}, file, "makes its own TLS connections"},
		"the default transport":                    {http.Client{}, file, "expected an *http.Transport"},
		"a file that is missing":                   {http.Client{Transport: &http.Transport{}}, "/" + canary, "read ca file: file cannot be read"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tc.client.Transport
			check(t, cafile.Trust(&tc.client, cafile.Options{Path: tc.path, Now: time.Now}), tc.want)
			if tc.client.Transport != before {
				t.Error("the client was changed")
			}
		})
	}
	if err := cafile.Trust(&http.Client{Transport: &http.Transport{}}, cafile.Options{Path: file}); err == nil {
		t.Error("a transport without a clock is accepted")
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
