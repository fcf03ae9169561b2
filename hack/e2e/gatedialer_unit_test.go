package e2e

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/e2e/gate"
	"github.com/relaypool/relaypool/hack/freeport"
)

// newGateDialer serves a gate and returns a dialer that uses it.
func newGateDialer(t *testing.T) *gateDialer {
	t.Helper()
	server := httptest.NewServer(gate.Handler())
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &gateDialer{Base: server.URL, Transport: transport}
}

func TestHTTPPassesThroughTheGate(t *testing.T) {
	t.Parallel()
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write([]byte(strings.ToUpper(string(body))))
	}))
	t.Cleanup(far.Close)
	client := newGateDialer(t).HTTP(4)
	t.Cleanup(client.CloseIdleConnections)
	// The message is larger than the buffers on the way, and is sent twice on one connection.
	for _, size := range []int{3, 1 << 20} {
		answer, err := client.Post(far.URL, "text/plain", strings.NewReader(strings.Repeat("a", size)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(got) != strings.Repeat("A", size) {
			t.Errorf("sent %d bytes, got %d, error %v", size, len(got), err)
		}
	}
}

func TestARefusedConnectionIsAnError(t *testing.T) {
	t.Parallel()
	closed, err := freeport.Find(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = newGateDialer(t).DialContext(t.Context(), "tcp", closed[0])
	var op *net.OpError
	if !errors.As(err, &op) || !strings.Contains(err.Error(), "refused") || !errors.Is(err, errUnreachable) {
		t.Errorf("error %v, want a net.OpError that names the refusal", err)
	}
}

func TestUnreachableGateIsNotARefusal(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		// This is the answer of the API server's proxy for a pod that it cannot reach.
		"a proxy's error": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "error trying to reach service: dial tcp 10.0.0.1:8089: connect: connection refused", http.StatusBadGateway)
		},
		"a pod that is gone": http.NotFound,
	} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		_, err := (&gateDialer{Base: server.URL, Transport: transport}).DialContext(t.Context(), "tcp", "10.0.0.2:80")
		if err == nil || errors.Is(err, errUnreachable) {
			t.Errorf("%s: error %v, want one that is not errUnreachable", name, err)
		}
	}
}

func TestACloseReachesTheOtherSide(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	accepted := make(chan net.Conn, 2)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	d := newGateDialer(t)
	for name, close := range map[string]func(near, far net.Conn) (open net.Conn){
		"the near side closes": func(near, far net.Conn) net.Conn { _ = near.Close(); return far },
		"the far side closes":  func(near, far net.Conn) net.Conn { _ = far.Close(); return near },
	} {
		near, err := d.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open := close(near, <-accepted)
		if err := open.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: reading the other side gives error %v, want the end of the connection", name, err)
		}
	}
}

func TestReadDeadlineIsKept(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	conn, err := newGateDialer(t).DialContext(t.Context(), "tcp", silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading past the deadline gives %v, want os.ErrDeadlineExceeded", err)
	}
}
