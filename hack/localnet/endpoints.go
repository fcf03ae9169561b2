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

// readHeaderTimeout bounds how long a connection may take over its headers.
const readHeaderTimeout = 5 * time.Second

// seedOf makes the endpoints of one chain draw differently.
func seedOf(name string, seed uint64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return seed ^ h.Sum64()
}

// Endpoint returns the RPC endpoint of that name, and makes it on first use,
// without faults. It serves HTTP and WebSocket as a handler; ListenEndpoint
// opens an address for it.
func (c *Chain) Endpoint(name string) *rpc.Endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.endpoints[name]
	if !ok {
		e = c.first.Another(seedOf(name, c.opts.Seed))
		c.endpoints[name] = e
	}
	return e
}

// names lists the endpoints that there are.
func (c *Chain) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.endpoints))
}

// known returns an existing endpoint.
func (c *Chain) known(name string) (*rpc.Endpoint, error) {
	c.mu.Lock()
	e, ok := c.endpoints[name]
	c.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("endpoint %q does not exist, expected one of %s", name, strings.Join(c.names(), ", "))
	}
	return e, nil
}

// SetFaults replaces the faults of the named endpoints, which must be there,
// and leaves the others alone. It changes nothing when one of the rules is not
// valid.
func (c *Chain) SetFaults(faults map[string][]fault.Rule) error {
	for name, rules := range faults {
		e, err := c.known(name)
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

// Stats counts the RPC calls that all endpoints received since the start, by
// method.
func (c *Chain) Stats() map[string]uint64 {
	sum := make(map[string]uint64)
	for _, name := range c.names() {
		for method, n := range c.Endpoint(name).Stats().Calls {
			sum[method] += n
		}
	}
	return sum
}

// ServeHTTP answers JSON-RPC calls to the default endpoint, and its WebSocket.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.first.ServeHTTP(w, r) }

// Listen serves the default endpoint on a TCP address until Close and returns
// the URL, with the port that the system chose for port 0. The same port serves
// WebSocket, with the scheme ws.
func (c *Chain) Listen(addr string) (url string, err error) {
	return c.ListenEndpoint(DefaultEndpoint, addr)
}

// ListenEndpoint is Listen for the endpoint of that name. An endpoint may
// listen on several addresses, such as the next port for those clients that
// look for WebSocket there, where Agave has it.
func (c *Chain) ListenEndpoint(name, addr string) (url string, err error) {
	if name == "" {
		return "", errors.New("listen for RPC: the endpoint's name is empty")
	}
	return c.listen("RPC", addr, c.Endpoint(name))
}

// listen serves a handler on a TCP address until Close.
func (c *Chain) listen(what, addr string, handler http.Handler) (url string, err error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen for %s: %w", what, err)
	}
	listener, err := net.ListenTCP("tcp", at)
	if err != nil {
		return "", fmt.Errorf("listen for %s: %w", what, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout}
	c.onClose(server.Close)
	c.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			c.opts.Log.Error("Server stopped", "serving", what, "error", err)
		}
	})
	return "http://" + listener.Addr().String(), nil
}
