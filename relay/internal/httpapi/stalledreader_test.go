package httpapi_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
)

// serveList serves the leaves of d with the real server, over real connections, and
// returns its address.
func serveList(t testing.TB, d *domains, change ...func(*httpapi.Options)) string {
	t.Helper()
	f := newFixture(t, d, append([]func(*httpapi.Options){func(o *httpapi.Options) {
		o.Now, o.ClientIPHeader = time.Now, "X-Real-IP"
		o.Log = slog.New(slog.DiscardHandler)
	}}, change...)...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httpapi.NewServer("", f.handler, time.Minute, slog.New(slog.DiscardHandler))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return listener.Addr().String()
}

// stall asks for a list and reads only the status of the answer.
func stall(t *testing.T, address, client, query string) (c net.Conn, status int) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(64 << 10)
	}
	if _, err := fmt.Fprintf(c, "GET /commitments%s HTTP/1.1\r\nHost: relay\r\nConnection: close\r\nX-Real-IP: %s\r\n\r\n", query, client); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c, line); err != nil {
		t.Fatalf("read the status of an answer: %v", err)
	}
	if _, err := fmt.Sscanf(string(line), "HTTP/1.1 %d", &status); err != nil {
		t.Fatal(err)
	}
	return c, status
}

// TestStalledReadersUseLittleMemory: a thousand clients with different addresses ask for
// the longest answers from a tree of a million leaves, each from another index, and
// do not read them.
func TestStalledReadersUseLittleMemory(t *testing.T) {
	const clients, leaves, most = 1000, 1_000_000, 100 << 20
	address := serveList(t, publishedLeaves(leaves))
	answers := map[int]int{}
	for i := range clients {
		_, status := stall(t, address, fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), fmt.Sprintf("?from_index=%d", i*(leaves-100_000)/clients))
		answers[status]++
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d answers are under way and %d were refused: %d MiB of heap are in use", answers[http.StatusOK], answers[http.StatusTooManyRequests], m.HeapInuse>>20)
	if answers[http.StatusOK] == 0 || answers[http.StatusOK]+answers[http.StatusTooManyRequests] != clients {
		t.Errorf("answers by status: %v, want only 200 and 429, and at least one 200", answers)
	}
	if m.HeapInuse > most {
		t.Errorf("%d stalled readers keep %d MiB of heap, want at most %d", clients, m.HeapInuse>>20, most>>20)
	}
}

func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	const perAddress, total = 8, 128
	d := publishedLeaves(200_000)
	f := newFixture(t, d, func(o *httpapi.Options) { o.ClientIPHeader = "X-Real-IP" })
	var waiting, done sync.WaitGroup
	release := make(chan struct{})
	d.position = func() (commitments.Position, error) {
		waiting.Done()
		<-release
		return commitments.Position{}, nil
	}
	from := func(client string) *http.Request {
		r := get("/commitments")
		r.Header.Set("X-Real-IP", client)
		return r
	}
	startReader := func(client string) {
		waiting.Add(1)
		done.Go(func() {
			if resp, body := f.do(t, from(client)); resp.StatusCode != http.StatusOK {
				t.Errorf("a reader within the limits is answered %d, want 200: %s", resp.StatusCode, body)
			}
		})
	}
	checkRefused := func(client, why string) {
		t.Helper()
		resp, body := f.do(t, from(client))
		if resp.StatusCode != http.StatusTooManyRequests || object(t, body)["code"] != "rate_limited" || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: answered %d, want 429 rate_limited with Retry-After: %s", why, resp.StatusCode, body)
		}
	}
	for range perAddress {
		startReader("203.0.113.7")
	}
	waiting.Wait()
	checkRefused("203.0.113.7", "one more reader from an address at its limit")
	for i := range total - perAddress {
		startReader(fmt.Sprintf("198.51.100.%d", i+1))
	}
	waiting.Wait()
	checkRefused("192.0.2.1", "one more reader than the relay serves at once")
	close(release)
	done.Wait()
	startReader("203.0.113.7") // the capacity is released
	done.Wait()
}

// TestStalledReadersAreCutOff: a client that reads nothing is cut off, which frees
// its capacity for the next.
func TestStalledReadersAreCutOff(t *testing.T) {
	t.Parallel()
	address := serveList(t, publishedLeaves(200_000), func(o *httpapi.Options) { o.ListStall = time.Second })
	const client, perAddress = "203.0.113.7", 8
	var stalled []net.Conn
	for len(stalled) < perAddress {
		if c, status := stall(t, address, client, ""); status == http.StatusOK {
			stalled = append(stalled, c)
		}
	}
	// The same number of new readers is served only after the stalled readers are cut
	// off.
	for served := 0; served < perAddress; {
		if _, status := stall(t, address, client, ""); status == http.StatusOK {
			served++
		}
	}
	for _, c := range stalled {
		if n, err := io.Copy(io.Discard, c); err == nil && n > 9<<20 {
			t.Errorf("a stalled reader was sent its whole answer, %d bytes", n)
		}
	}
}
