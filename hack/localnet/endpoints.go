package localnet

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/rpc"
)

// DefaultEndpoint is the name of the endpoint that every chain has.
const DefaultEndpoint = "default"

// readHeaderTimeout is the time that a connection has to send its headers.
const readHeaderTimeout = 5 * time.Second

// seedOf derives an endpoint's seed from its name, so that the endpoints of one
// chain draw different faults.
func seedOf(name string, seed uint64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return seed ^ h.Sum64()
}

// Endpoint returns the RPC endpoint of a name, and creates it on first use, without faults. The
// endpoint is a handler for HTTP and WebSocket. ListenEndpoint serves it on an address.
func (c *Chain) Endpoint(name string) *rpc.Endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.endpoints[name]
	if !ok {
		e = c.defaultEndpoint.Another(seedOf(name, c.opts.Seed))
		c.endpoints[name] = e
	}
	return e
}

func (c *Chain) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.endpoints))
}

// existingEndpoint returns an existing endpoint, or an error that lists the existing names.
func (c *Chain) existingEndpoint(name string) (*rpc.Endpoint, error) {
	c.mu.Lock()
	e, ok := c.endpoints[name]
	c.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("endpoint %q does not exist, expected one of %s", name, strings.Join(c.names(), ", "))
	}
	return e, nil
}

// SetFaults replaces the fault rules of the named endpoints, which must exist, and
// leaves other endpoints unchanged. It changes nothing when one rule is invalid.
func (c *Chain) SetFaults(faults map[string][]fault.Rule) error {
	for name, rules := range faults {
		e, err := c.existingEndpoint(name)
		if err != nil {
			return err
		}
		if err := e.CheckFaults(rules); err != nil {
			return fmt.Errorf("endpoint %s: %w", name, err)
		}
	}
	for name, rules := range faults {
		if err := c.Endpoint(name).SetFaults(rules); err != nil {
			return fmt.Errorf("endpoint %s: %w", name, err)
		}
	}
	return nil
}

// Stats returns the number of RPC calls that all endpoints received since the start, by method.
func (c *Chain) Stats() map[string]uint64 {
	sum := make(map[string]uint64)
	for _, name := range c.names() {
		for method, n := range c.Endpoint(name).Stats().Calls {
			sum[method] += n
		}
	}
	return sum
}

// ServeHTTP serves HTTP and WebSocket as the default endpoint.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.defaultEndpoint.ServeHTTP(w, r) }

// Listen serves the default endpoint on a TCP address until Close and returns the URL. For port 0
// the URL has the port that the system chose. The same port serves WebSocket, with the scheme ws.
func (c *Chain) Listen(addr string) (url string, err error) {
	return c.ListenEndpoint(DefaultEndpoint, addr)
}

// ListenEndpoint is Listen for the endpoint of a name. An endpoint may listen on several addresses.
// Agave serves WebSocket on the next port, where some clients expect it.
func (c *Chain) ListenEndpoint(name, addr string) (url string, err error) {
	if name == "" {
		return "", errors.New("listen for RPC: the endpoint's name is empty")
	}
	return c.listen("RPC", addr, c.Endpoint(name))
}

// listen serves a handler on a TCP address until Close.
func (c *Chain) listen(service, addr string, handler http.Handler) (url string, err error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen for %s: %w", service, err)
	}
	listener, err := net.ListenTCP("tcp", at)
	if err != nil {
		return "", fmt.Errorf("listen for %s: %w", service, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout}
	c.onClose(server.Close)
	c.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			c.opts.Log.Error("server stopped", "serving", service, "error", err)
		}
	})
	return "http://" + listener.Addr().String(), nil
}
