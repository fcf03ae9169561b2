// Package gate lets the end-to-end suite dial from inside a cluster while it runs outside:
// it is a pod that connects on request. The suite has the dialer that reaches the pod through
// the API server's proxy. The connections come from a pod, resolve names as pods do and pass
// Services and network policies in every cluster, and need neither a tunnel nor an open
// port.
package gate

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// Port is where the gate listens.
	Port = 8089
	// DialPath connects to the host:port that follows it, when the request asks for an
	// upgrade to Protocol. The address is in the path because the API server's proxy drops
	// the query of an upgraded request.
	DialPath = "/dial/"
	// HealthPath answers 200 while the gate serves.
	HealthPath = "/healthz"
	// Protocol is the protocol of the upgrade: unframed bytes.
	Protocol = "tcp"
	// toParameter is the pattern's name for the address to dial.
	toParameter = "to"
	// Unreachable begins the answer of a gate that could not connect: proxies
	// between the gate and the client use the same status.
	Unreachable = "the gate could not connect: "
)

// dialTimeout bounds a connection's set-up.
const dialTimeout = 10 * time.Second

// Handler serves the gate.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET "+DialPath+"{"+toParameter+"}", dial)
	return mux
}

// dial connects before the upgrade, so that the answer can report a refusal.
func dial(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != Protocol {
		http.Error(w, "expected the header Upgrade: "+Protocol, http.StatusUpgradeRequired)
		return
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	far, err := dialer.DialContext(r.Context(), "tcp", r.PathValue(toParameter))
	if err != nil {
		http.Error(w, Unreachable+err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = far.Close() }()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "the connection cannot be hijacked", http.StatusInternalServerError)
		return
	}
	near, buffered, err := hijacker.Hijack()
	if err != nil {
		return // the connection is gone
	}
	defer func() { _ = near.Close() }()
	if _, err := fmt.Fprintf(near, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", Protocol); err != nil {
		return
	}
	Join(near, buffered, far)
}

// Join copies both ways until one side has ended, and then closes both: the protocols that
// pass here do not use half-closed connections.
func Join(near io.WriteCloser, nearReader io.Reader, far io.ReadWriteCloser) {
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(far, nearReader) // the next read reports the failure
		_ = far.Close()
	})
	copying.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.Close()
	})
	copying.Wait()
}

// Serve answers at the address until stop is closed.
func Serve(address string, stop <-chan struct{}) error {
	server := &http.Server{Addr: address, Handler: Handler(), ReadHeaderTimeout: dialTimeout}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the gate: %w", err)
	case <-stop:
		_ = server.Close() // a listener that does not close ends with the process, as hijacked connections do
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the gate: %w", err)
		}
		return nil
	}
}
