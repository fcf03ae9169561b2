package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// ErrUnreachable is of what the gate itself could not connect to: it was refused,
// or nothing answered for ten seconds. That the gate was not reached is another error.
var ErrUnreachable = errors.New("the address cannot be reached from the gate")

// Dialer connects through a gate.
type Dialer struct {
	// Base is the gate's URL without a slash at the end, such as that of the API
	// server's proxy for its pod.
	Base string
	// Transport reaches it. It must speak HTTP/1.1, which alone can be upgraded.
	Transport http.RoundTripper
}

// DialContext connects to host:port from where the gate is. The network is tcp.
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Base+DialPath+url.PathEscape(address), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("dial %s through the gate: %w", address, err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", Protocol)
	answer, err := d.Transport.RoundTrip(request)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("reach the gate for %s: %w", address, err)}
	}
	stream, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 512)) // for the message alone
		err := fmt.Errorf("the gate answered %s for %s: %s", answer.Status, address, said)
		if answer.StatusCode == http.StatusBadGateway && bytes.HasPrefix(said, []byte(unreachable)) {
			err = fmt.Errorf("%w: %s: %s", ErrUnreachable, address, bytes.TrimSpace(said[len(unreachable):]))
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.Join(err, answer.Body.Close())}
	}
	return attach(stream), nil
}

// attach makes a connection with deadlines of a stream that has none.
func attach(stream io.ReadWriteCloser) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		defer func() { _ = errors.Join(theirs.Close(), stream.Close()) }()
		var copying sync.WaitGroup
		copying.Go(func() {
			_, _ = io.Copy(stream, theirs) // our side closed, or the stream broke
			_ = stream.Close()
		})
		copying.Go(func() {
			_, _ = io.Copy(theirs, stream)
			_ = theirs.Close()
		})
		copying.Wait()
	}()
	return ours
}

// HTTP gives a client whose connections go through the gate. Each call has to
// bound itself by its context.
func (d *Dialer) HTTP(perHost int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: d.DialContext, MaxIdleConnsPerHost: perHost, IdleConnTimeout: time.Minute,
	}}
}
