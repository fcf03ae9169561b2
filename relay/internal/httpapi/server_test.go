package httpapi_test

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/httpapi/httpapitest"
)

func TestServerTimeouts(t *testing.T) {
	t.Parallel()
	const longest = 75 * time.Second
	s := httpapi.NewServer("127.0.0.1:8080", http.NotFoundHandler(), longest, slog.New(slog.DiscardHandler))
	if s.Addr != "127.0.0.1:8080" {
		t.Errorf("address %q, want 127.0.0.1:8080", s.Addr)
	}
	for name, d := range map[string]time.Duration{"ReadHeaderTimeout": s.ReadHeaderTimeout, "ReadTimeout": s.ReadTimeout, "IdleTimeout": s.IdleTimeout} {
		if d <= 0 {
			t.Errorf("%s is not set: a client that sends nothing would keep its connection for ever", name)
		}
	}
	if s.WriteTimeout <= s.ReadTimeout+longest {
		t.Errorf("WriteTimeout %v cuts off a client who waits %v for an outcome", s.WriteTimeout, longest)
	}
	if s.MaxHeaderBytes <= 0 {
		t.Error("MaxHeaderBytes is not set")
	}
	s = httpapi.NewServer("", http.NotFoundHandler(), contract.CallTimeout+contract.WaitMax, slog.New(slog.DiscardHandler))
	if s.WriteTimeout != contract.LongestRequest {
		t.Errorf("the server ends requests after %v, and proxies are told %v", s.WriteTimeout, contract.LongestRequest)
	}
}

func TestServerErrorLogHasNoAddresses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ complaint, want string }{
		"an IPv4 client":  {"http: TLS handshake error from 203.0.113.7:51234: EOF", "http: TLS handshake error from (address): EOF"},
		"an IPv6 client":  {"http: TLS handshake error from [2001:db8::7]:51234: EOF", "http: TLS handshake error from (address): EOF"},
		"a zone":          {"http: error from [fe80::7%eth0]:51234: EOF", "http: error from (address): EOF"},
		"a panic":         {"http: panic serving 203.0.113.7:51234: canary\ngoroutine 7 [running]:\ncanary(0x1)", "http: panic outside the API's own recovery"},
		"an accept error": {"http: Accept error: accept tcp 127.0.0.1:8080: accept4: too many open files; retrying in 5ms", "http: Accept error: accept tcp (address): accept4: too many open files; retrying in 5ms"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &syncBuffer{}
			s := httpapi.NewServer("", http.NotFoundHandler(), time.Second, slog.New(slog.NewJSONHandler(log, nil)))
			s.ErrorLog.Print(tt.complaint)
			if !strings.Contains(log.String(), `"complaint":"`+tt.want+`"}`) {
				t.Errorf("log %s, want %q", log, tt.want)
			}
		})
	}
}

// TestMalformedRequestsOnTheWire sends requests that no well-behaved client sends, to
// the real server over a real connection.
func TestMalformedRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpapi.NewServer("", newFixture(t, &domains{}).handler, time.Minute, slog.New(slog.DiscardHandler))
	server.Start()
	defer server.Close()
	tests := map[string]struct {
		request    string
		wantStatus int
	}{
		"an encoded slash":             {"GET /status%2F1 HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n", 404},
		"a path with dots":             {"GET /../etc/passwd HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n", 404},
		"two slashes":                  {"GET //health HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n", 404},
		"an id with an encoded slash":  {"GET /status/a%2Fb HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n", 400},
		"an id with a broken escape":   {"GET /status/%25zz HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n", 400},
		"a query with a broken escape": {"GET /commitments?limit=%zz HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n", 400},
		"OPTIONS of the whole server":  {"OPTIONS * HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n", 404},
		"a body longer than its limit": {"POST /transact HTTP/1.1\r\nHost: relay\r\nConnection: close\r\nContent-Length: 99999999\r\n\r\n" + strings.Repeat("x", httpapi.MaxBody+1), 413},
		"a malformed chunked body":     {"POST /transact HTTP/1.1\r\nHost: relay\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte(tt.request)); err != nil {
				t.Fatal(err)
			}
			method, target, _ := strings.Cut(strings.SplitN(tt.request, " HTTP", 2)[0], " ")
			req := httptest.NewRequest(method, "/", nil)
			req.URL.Path, _, _ = strings.Cut(target, "?")
			resp, err := http.ReadResponse(bufio.NewReader(conn), req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body := httpapitest.Validate(t, req, resp)
			if resp.StatusCode != tt.wantStatus {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, tt.wantStatus, body)
			}
		})
	}
}
