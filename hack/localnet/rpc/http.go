package rpc

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// maxBody is Agave's default limit on a request, batches included, in bytes.
const maxBody = 50 << 10

// ServeHTTP answers POSTed JSON-RPC calls, single or batched, GET /health, and
// requests to open a WebSocket on any path.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case isUpgrade(r):
		e.serveSocket(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/health":
		e.serveHealth(w, r)
	case r.Method != http.MethodPost:
		http.Error(w, "Used HTTP Method is not allowed. POST or OPTIONS is required", http.StatusMethodNotAllowed)
	default:
		e.serveCalls(w, r)
	}
}

func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

func (e *Endpoint) serveCalls(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "Supplied content type is not allowed. Content-Type: application/json is required",
			http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(w, "Payload too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		// The client is gone: nobody reads an answer.
		return
	}
	answer, failure := e.answer(r.Context(), e.parse(body, e.methods))
	if failure != nil {
		e.failHTTP(w, r, failure)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if answer == nil {
		return
	}
	e.write(w, answer)
}

func (e *Endpoint) write(w http.ResponseWriter, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		e.log.Debug("Answer not written", "error", err)
	}
}

// failHTTP ends a request as a rule says.
func (e *Endpoint) failHTTP(w http.ResponseWriter, r *http.Request, rule *fault.Rule) {
	switch {
	case rule.Status != 0:
		if rule.RetryAfter > 0 {
			seconds := (rule.RetryAfter + time.Second - 1) / time.Second
			w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(rule.Status)
		e.write(w, fail(nil, statusError(rule)))
	case rule.Hang:
		select {
		case <-r.Context().Done():
		case <-e.closed:
		}
		panic(http.ErrAbortHandler)
	default:
		// This is how a handler closes its connection without an answer.
		panic(http.ErrAbortHandler)
	}
}

// statusError is the body of an HTTP status, as providers write it.
func statusError(rule *fault.Rule) *Error {
	return &Error{Code: rule.Status, Message: http.StatusText(rule.Status)}
}

// serveHealth answers GET /health, which is getHealth for load balancers.
func (e *Endpoint) serveHealth(w http.ResponseWriter, r *http.Request) {
	p := &pending{plan: e.faults.Plan("getHealth"), serve: func(c *call, _ params) (any, *Error) {
		if c.healthTold() > 0 {
			return "behind", nil
		}
		return "ok", nil
	}}
	p.ID = json.RawMessage("1")
	answer, failure := e.answer(r.Context(), message{calls: []*pending{p}})
	if failure != nil {
		e.failHTTP(w, r, failure)
		return
	}
	if said, ok := answer.(response); ok {
		if _, err := io.WriteString(w, said.Result.(string)); err != nil {
			e.log.Debug("Answer not written", "error", err)
		}
		return
	}
	e.write(w, answer)
}
