package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/outbound"
)

// reply is the answer of a host of the network to a call.
type reply struct {
	status int // 0 is 200
	body   string
	header http.Header
	// after is how long it takes; hang leaves the caller without an answer.
	after time.Duration
	hang  bool
}

func says(json string) reply {
	return reply{body: `{"jsonrpc":"2.0","id":1,"result":` + json + `}`}
}

func refuses(json string) reply {
	return reply{body: `{"jsonrpc":"2.0","id":1,"error":` + json + `}`}
}

var (
	sick   = reply{status: http.StatusServiceUnavailable}
	behind = refuses(`{"code":-32016,"message":"Minimum context slot has not been reached","data":{"contextSlot":40}}`)
)

// host is an RPC node in memory, so that tests can run in virtual time. It has a slot and
// answers the common calls; a test changes its answers.
type host struct {
	mu    sync.Mutex
	slot  uint64
	chain solana.Hash
	// said are the answers of methods that a test has set; all is the answer to every other
	// method except getGenesisHash.
	said map[string]reply
	all  *reply
	// page answers getSignaturesForAddress by its parameters; nil for none.
	page func(params string) reply
	// transaction answers getTransaction by its parameters; nil for none.
	transaction func(params string) reply
	calls       []string
	last        map[string]json.RawMessage // parameters by method
}

func (h *host) set(method string, r reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said[method] = r
}

// fail makes every call fail like r; heal ends it.
func (h *host) fail(r reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = &r
}

func (h *host) heal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all, h.said = nil, map[string]reply{}
}

func (h *host) at(slot uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slot = slot
}

// move advances the host's slot.
func (h *host) move(slots uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slot += slots
}

func (h *host) standing() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slot
}

// count is how often the method was called, or all but getGenesisHash with "".
func (h *host) count(method string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if c == method || (method == "" && c != "getGenesisHash") {
			n++
		}
	}
	return n
}

func (h *host) params(method string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.last[method])
}

func (h *host) take(method string, params json.RawMessage) reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls, h.last[method] = append(h.calls, method), params
	if r, ok := h.said[method]; ok {
		return r
	}
	if h.all != nil && method != "getGenesisHash" {
		return *h.all
	}
	if method == "getTransaction" && h.transaction != nil {
		return h.transaction(string(params))
	}
	if method == "getSignaturesForAddress" && h.page != nil {
		return h.page(string(params))
	}
	valued := func(value string) reply {
		return says(fmt.Sprintf(`{"context":{"slot":%d},"value":%s}`, h.slot, value))
	}
	switch method {
	case "getGenesisHash":
		return says(fmt.Sprintf(`%q`, h.chain))
	case "getSlot":
		return says(fmt.Sprint(h.slot))
	case "getBalance":
		return valued("5")
	case "getLatestBlockhash":
		return valued(fmt.Sprintf(`{"blockhash":%q,"lastValidBlockHeight":%d}`, hashOf(h.slot), h.slot+150))
	case "getEpochInfo":
		if strings.Contains(string(params), "confirmed") {
			return says(fmt.Sprintf(`{"absoluteSlot":%d,"blockHeight":%d}`, h.slot, h.slot))
		}
		return says(fmt.Sprintf(`{"absoluteSlot":%d,"blockHeight":%d}`, h.slot-32, h.slot-40))
	case "getFirstAvailableBlock":
		return says("3")
	case "getSignatureStatuses":
		return valued("[null]")
	case "sendTransaction":
		return says(fmt.Sprintf("%q", sigA))
	default:
		return refuses(`{"code":-32601,"message":"Method not found"}`)
	}
}

func hashOf(slot uint64) solana.Hash { return solana.Hash{1, byte(slot), byte(slot >> 8)} }

// network carries calls to hosts by their names.
type network map[string]*host

// newNetwork makes hosts at slot 100 of the same chain.
func newNetwork(names ...string) network {
	n := network{}
	for _, name := range names {
		n[name] = &host{slot: 100, chain: hashA, said: map[string]reply{}, last: map[string]json.RawMessage{}}
	}
	return n
}

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var call struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(body, &call); err != nil {
		return nil, err
	}
	answer := n[r.URL.Hostname()].take(call.Method, call.Params)
	wait := time.NewTimer(answer.after)
	defer wait.Stop()
	arrived := wait.C
	if answer.hang {
		arrived = nil
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-arrived:
	}
	status := answer.status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{
		StatusCode: status, Header: answer.header, Body: io.NopCloser(strings.NewReader(answer.body)), Request: r,
	}, nil
}

// events is an observer and a log that keep what they receive.
type events struct {
	mu      sync.Mutex
	log     bytes.Buffer
	called  []string
	states  []string
	leftOut []string
	nudged  int
	// contradicted are the endpoints that others contradicted.
	contradicted []string
}

func (e *events) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.Write(p)
}

func (e *events) RPCCalled(endpoint, method, class string, _ time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.called = append(e.called, endpoint+" "+method+" "+class)
}

func (e *events) BreakerChanged(endpoint string, s outbound.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.states = append(e.states, endpoint+" "+string(s))
}

func (e *events) RebroadcastSkipped(endpoint string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leftOut = append(e.leftOut, endpoint)
}

func (e *events) NotificationReceived(string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nudged++
}

func (e *events) EndpointContradicted(endpoint string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.contradicted = append(e.contradicted, endpoint)
}

func (e *events) logged() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.String()
}

func (e *events) breakers() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.states)
}

// of configures one endpoint for each name, with the roles if any.
func of(names ...string) (out []Endpoint) {
	for _, name := range names {
		out = append(out, Endpoint{Name: name, URL: "http://" + name})
	}
	return out
}

// newEndpoints makes Endpoints of the network; change may be nil.
func newEndpoints(t *testing.T, n network, endpoints []Endpoint, change func(*EndpointsOptions)) (*Endpoints, *events) {
	t.Helper()
	seen := new(events)
	o := EndpointsOptions{
		Endpoints: endpoints, Genesis: hashA, Now: time.Now, Rand: func() float64 { return 0.5 }, Observer: seen,
		HTTP: func() *http.Client { return &http.Client{Transport: n} },
		Log: slog.New(slog.NewTextHandler(seen, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
	}
	if change != nil {
		change(&o)
	}
	e, err := NewEndpoints(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, seen
}
