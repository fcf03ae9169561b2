package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/relaypool/relaypool/hack/e2e/gate"
)

// errUnreachable says that the gate could not connect to the address: the address refused,
// or did not answer for ten seconds. If the gate cannot be reached, the error is a different one.
var errUnreachable = errors.New("the address cannot be reached from the gate")

// gateDialer connects through a gate.
type gateDialer struct {
	// Base is the gate's URL without a slash at the end, such as that of the API
	// server's proxy for its pod.
	Base string
	// Transport reaches the gate. It must use HTTP/1.1, because no other version can be upgraded.
	Transport http.RoundTripper
}

// DialContext connects to host:port from the gate's pod. The network is tcp.
func (d *gateDialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Base+gate.DialPath+url.PathEscape(address), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("dial %s through the gate: %w", address, err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", gate.Protocol)
	answer, err := d.Transport.RoundTrip(request)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("reach the gate for %s: %w", address, err)}
	}
	stream, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 512)) // only for the message
		err := fmt.Errorf("the gate answered %s for %s: %s", answer.Status, address, text)
		if answer.StatusCode == http.StatusBadGateway && bytes.HasPrefix(text, []byte(gate.Unreachable)) {
			err = fmt.Errorf("%w: %s: %s", errUnreachable, address, bytes.TrimSpace(text[len(gate.Unreachable):]))
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.Join(err, answer.Body.Close())}
	}
	return attach(stream), nil
}

// attach turns a stream without deadlines into a connection with deadlines.
func attach(stream io.ReadWriteCloser) net.Conn {
	outer, inner := net.Pipe()
	go gate.Join(inner, inner, stream)
	return outer
}

// HTTP returns a client with connections through the gate. The context of each call has to
// bound the call.
func (d *gateDialer) HTTP(perHost int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: d.DialContext, MaxIdleConnsPerHost: perHost, IdleConnTimeout: time.Minute,
	}}
}
