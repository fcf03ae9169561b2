package rpc

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// answer is a node's answer to one call.
type answer struct {
	status int // 0 is 200
	body   string
	// hang leaves the call without an answer until the caller gives up.
	hang bool
}

func result(json string) answer {
	return answer{body: `{"jsonrpc":"2.0","id":1,"result":` + json + `}`}
}

func fault(json string) answer { return answer{body: `{"jsonrpc":"2.0","id":1,"error":` + json + `}`} }

// node is an endpoint that answers from a script: each call gets the next answer, and the last
// answer is repeated.
type node struct {
	*httptest.Server
	mu      sync.Mutex
	script  []answer
	calls   int
	method  string
	params  json.RawMessage
	headers http.Header
}

func newNode(t *testing.T, script ...answer) *node {
	t.Helper()
	n := &node{script: script}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, n.script[0].body)
			return
		}
		body, err := io.ReadAll(r.Body)
		var call struct {
			Version string          `json:"jsonrpc"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params"`
		}
		if err != nil || json.Unmarshal(body, &call) != nil || call.Version != "2.0" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the request is not JSON-RPC: %s %q", r.Method, body)
		}
		n.mu.Lock()
		a := n.script[min(n.calls, len(n.script)-1)]
		n.calls++
		n.method, n.params, n.headers = call.Method, call.Params, r.Header.Clone()
		n.mu.Unlock()
		if a.hang {
			<-r.Context().Done()
			return
		}
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(n.Close)
	return n
}

func (n *node) received() (calls int, method string, params json.RawMessage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls, n.method, n.params
}

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.HTTP == nil {
		o.HTTP = NewHTTPClient()
	}
	o.Now = time.Now
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.HTTP.CloseIdleConnections)
	return c
}
