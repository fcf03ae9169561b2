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
	// after is the delay of the answer. With hang there is no answer.
	after time.Duration
	hang  bool
}

func resultReply(json string) reply {
	return reply{body: `{"jsonrpc":"2.0","id":1,"result":` + json + `}`}
}

func errorReply(json string) reply {
	return reply{body: `{"jsonrpc":"2.0","id":1,"error":` + json + `}`}
}

var (
	serverError = reply{status: http.StatusServiceUnavailable}
	behind      = errorReply(`{"code":-32016,"message":"Minimum context slot has not been reached","data":{"contextSlot":40}}`)
)

// host is an RPC node in memory, so that tests can run in virtual time. It has a slot and
// answers the common calls; a test changes its answers.
type host struct {
	mu    sync.Mutex
	slot  uint64
	chain solana.Hash
	// answers are the answers that a test has set, by method. fallback is the answer to every
	// other method except getGenesisHash; nil for the common answers.
	answers  map[string]reply
	fallback *reply
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
	h.answers[method] = r
}

// fail makes every call whose answer is not set return r. heal restores the common answers.
func (h *host) fail(r reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fallback = &r
}

func (h *host) heal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fallback, h.answers = nil, map[string]reply{}
}

func (h *host) setSlot(slot uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slot = slot
}

// advance increases the host's slot.
func (h *host) advance(slots uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slot += slots
}

func (h *host) currentSlot() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slot
}

// count returns the number of calls of the method; with "", of all methods but getGenesisHash.
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

func (h *host) answer(method string, params json.RawMessage) reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls, h.last[method] = append(h.calls, method), params
	if r, ok := h.answers[method]; ok {
		return r
	}
	if h.fallback != nil && method != "getGenesisHash" {
		return *h.fallback
	}
	if method == "getTransaction" && h.transaction != nil {
		return h.transaction(string(params))
	}
	if method == "getSignaturesForAddress" && h.page != nil {
		return h.page(string(params))
	}
	valued := func(value string) reply {
		return resultReply(fmt.Sprintf(`{"context":{"slot":%d},"value":%s}`, h.slot, value))
	}
	switch method {
	case "getGenesisHash":
		return resultReply(fmt.Sprintf(`%q`, h.chain))
	case "getSlot":
		return resultReply(fmt.Sprint(h.slot))
	case "getBalance":
		return valued("5")
	case "getLatestBlockhash":
		return valued(fmt.Sprintf(`{"blockhash":%q,"lastValidBlockHeight":%d}`, hashOf(h.slot), h.slot+150))
	case "getEpochInfo":
		if strings.Contains(string(params), "confirmed") {
			return resultReply(fmt.Sprintf(`{"absoluteSlot":%d,"blockHeight":%d}`, h.slot, h.slot))
		}
		return resultReply(fmt.Sprintf(`{"absoluteSlot":%d,"blockHeight":%d}`, h.slot-32, h.slot-40))
	case "getFirstAvailableBlock":
		return resultReply("3")
	case "getSignatureStatuses":
		return valued("[null]")
	case "sendTransaction":
		return resultReply(fmt.Sprintf("%q", sigA))
	default:
		return errorReply(`{"code":-32601,"message":"Method not found"}`)
	}
}

// answerAll answers a call, or a batch of calls. The first answer determines how and when a batch is answered.
func (h *host) answerAll(body []byte) (reply, error) {
	type call struct {
		ID     int             `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	var calls []call
	if !bytes.HasPrefix(body, []byte("[")) {
		calls = make([]call, 1)
		err := json.Unmarshal(body, &calls[0])
		return h.answer(calls[0].Method, calls[0].Params), err
	}
	if err := json.Unmarshal(body, &calls); err != nil {
		return reply{}, err
	}
	var first reply
	var bodies []string
	for i, c := range calls {
		r := h.answer(c.Method, c.Params)
		if i == 0 {
			first = r
		}
		bodies = append(bodies, strings.Replace(r.body, `"id":1`, fmt.Sprintf(`"id":%d`, c.ID), 1))
	}
	if first.body != "" {
		first.body = "[" + strings.Join(bodies, ",") + "]"
	}
	return first, nil
}

func hashOf(slot uint64) solana.Hash { return solana.Hash{1, byte(slot), byte(slot >> 8)} }

// network carries calls to hosts by their names.
type network map[string]*host

// newNetwork makes hosts at slot 100 of the same chain.
func newNetwork(names ...string) network {
	n := network{}
	for _, name := range names {
		n[name] = &host{slot: 100, chain: hashA, answers: map[string]reply{}, last: map[string]json.RawMessage{}}
	}
	return n
}

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	reply, err := n[r.URL.Hostname()].answerAll(body)
	if err != nil {
		return nil, err
	}
	wait := time.NewTimer(reply.after)
	defer wait.Stop()
	arrived := wait.C
	if reply.hang {
		arrived = nil
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-arrived:
	}
	status := reply.status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{
		StatusCode: status, Header: reply.header, Body: io.NopCloser(strings.NewReader(reply.body)), Request: r,
	}, nil
}

// events is an observer and a log that keep what they receive.
type events struct {
	mu            sync.Mutex
	log           bytes.Buffer
	called        []string
	states        []string
	skipped       []string // endpoints of skipped rebroadcasts
	notifications int
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
	e.skipped = append(e.skipped, endpoint)
}

func (e *events) NotificationReceived(string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notifications++
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

// endpointsNamed configures one endpoint for each name.
func endpointsNamed(names ...string) (out []Endpoint) {
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
