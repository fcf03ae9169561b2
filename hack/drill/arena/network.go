package arena

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/localnet"
)

// network is the local chain behind RPC endpoints that misbehave on demand.
type network struct {
	chain *localnet.Chain
	// honest is an endpoint without faults, for the drill's own eyes.
	honest    string
	endpoints []*endpoint
	servers   []*http.Server
	serving   sync.WaitGroup
}

// endpoint is one faulty front of the chain.
type endpoint struct {
	chain http.Handler
	url   string

	mu     sync.Mutex
	rand   *rand.Rand
	active []string
}

// faultNames are the faults that an endpoint can have.
func faultNames() []string {
	return []string{"slow", "errors", "rate limits", "cuts", "hangs", "acts, then fails"}
}

func newNetwork(ctx context.Context, chain *localnet.Chain, endpoints int, seed uint64) (*network, error) {
	n := &network{chain: chain}
	var err error
	if n.honest, err = chain.Listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	for i := range endpoints {
		e := &endpoint{chain: chain, rand: rand.New(rand.NewPCG(seed, uint64(i)))} //nolint:gosec // a schedule that repeats needs no secure randomness
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for RPC: %w", err), n.close())
		}
		e.url = "http://" + listener.Addr().String()
		server := &http.Server{Handler: e, ReadHeaderTimeout: 5 * time.Second}
		n.endpoints, n.servers = append(n.endpoints, e), append(n.servers, server)
		n.serving.Go(func() { _ = server.Serve(listener) }) // until close
	}
	return n, nil
}

func (n *network) close() error {
	var errs []error
	for _, server := range n.servers {
		errs = append(errs, server.Close())
	}
	n.serving.Wait()
	return errors.Join(errs...)
}

// set turns a fault of an endpoint on or off.
func (n *network) set(endpoint int, name string, on bool) {
	e := n.endpoints[endpoint]
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active = slices.DeleteFunc(e.active, func(other string) bool { return other == name })
	if on {
		e.active = append(e.active, name)
	}
}

// clear turns every fault off.
func (n *network) clear() {
	for _, e := range n.endpoints {
		e.mu.Lock()
		e.active = nil
		e.mu.Unlock()
	}
}

// kinds are the events that this network can have.
func (n *network) kinds() []schedule.Kind {
	return slices.DeleteFunc(schedule.AllKinds(), func(k schedule.Kind) bool { return k == schedule.Fork })
}

// fork undoes the newest blocks.
func (n *network) fork(int, string) error {
	return errors.New("this network cannot fork")
}

func (e *endpoint) draw() (name string, chance float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.active) == 0 {
		return "", 0
	}
	return e.active[e.rand.IntN(len(e.active))], e.rand.Float64()
}

// ServeHTTP answers a call as the active faults have it.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, chance := e.draw()
	switch {
	case name == "slow":
		wait(r.Context(), time.Duration(chance*float64(2*time.Second)))
	case name == "errors" && chance < 0.7:
		http.Error(w, "the node is overloaded", http.StatusBadGateway)
		return
	case name == "rate limits" && chance < 0.7:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	case name == "cuts" && chance < 0.7:
		panic(http.ErrAbortHandler)
	case name == "hangs" && chance < 0.5:
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return
	case name == "acts, then fails" && chance < 0.6:
		e.chain.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	e.chain.ServeHTTP(w, r)
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
