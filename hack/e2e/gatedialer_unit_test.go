package gate_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/e2e/gate"
	"github.com/relaypool/relaypool/hack/freeport"
)

// newDialer serves a gate and returns a dialer that uses it.
func newDialer(t *testing.T) *gate.Dialer {
	t.Helper()
	server := httptest.NewServer(gate.Handler())
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &gate.Dialer{Base: server.URL, Transport: transport}
}

func TestHTTPPassesThroughTheGate(t *testing.T) {
	t.Parallel()
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write([]byte(strings.ToUpper(string(body))))
	}))
	t.Cleanup(far.Close)
	client := newDialer(t).HTTP(4)
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
	_, err = newDialer(t).DialContext(t.Context(), "tcp", closed[0])
	var op *net.OpError
	if !errors.As(err, &op) || !strings.Contains(err.Error(), "refused") || !errors.Is(err, gate.ErrUnreachable) {
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
		_, err := (&gate.Dialer{Base: server.URL, Transport: transport}).DialContext(t.Context(), "tcp", "10.0.0.2:80")
		if err == nil || errors.Is(err, gate.ErrUnreachable) {
			t.Errorf("%s: error %v, want one that is not ErrUnreachable", name, err)
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
	d := newDialer(t)
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
	conn, err := newDialer(t).DialContext(t.Context(), "tcp", silent.Addr().String())
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

func TestKillEndsTheContainersProcessesAndNoOthers(t *testing.T) {
	t.Parallel()
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	member, bystander := start(), start()
	proc := t.TempDir()
	for pid, group := range map[int]string{
		member.Process.Pid:    "0::/../../pod1/cri-containerd-abc123.scope\n",
		bystander.Process.Pid: "0::/../../pod1/cri-containerd-def456.scope\n",
	} {
		folder := filepath.Join(proc, strconv.Itoa(pid))
		if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "cgroup"), []byte(group), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	killed, err := gate.KillContainer(proc, "abc123")
	if err != nil || len(killed) != 1 || killed[0] != member.Process.Pid {
		t.Errorf("killed %v, error %v; want process %d", killed, err, member.Process.Pid)
	}
	if state, err := member.Process.Wait(); err != nil || !strings.Contains(state.String(), "killed") {
		t.Errorf("the container's process has the state %v, error %v; want a killed process", state, err)
	}
	if _, err := gate.KillContainer(proc, "nothing"); err == nil || !strings.Contains(err.Error(), "no process") {
		t.Errorf("an unknown container gives error %v, want one with \"no process\"", err)
	}
	if _, err := gate.KillContainer(proc, ""); err == nil {
		t.Error("an empty id, which is a part of every path, gives no error")
	}
}
