package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

// maxBody is Agave's default limit on the body of a request, in bytes.
const maxBody = 50 << 10

// ServeHTTP answers POSTed JSON-RPC calls, and requests to open a WebSocket on any path.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case isUpgrade(r):
		e.serveSocket(w, r)
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
		// The client has gone and reads no answer.
		return
	}
	answer, failure := e.answerAll(r.Context(), body)
	if failure != nil {
		e.failHTTP(w, r, failure)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	e.write(w, answer)
}

// answerAll answers a call, or the calls of a batch one after the other.
func (e *Endpoint) answerAll(ctx context.Context, body []byte) (any, *fault.Rule) {
	var calls []json.RawMessage
	if json.Unmarshal(body, &calls) != nil || len(calls) == 0 {
		return e.answer(ctx, e.parse(body, e.methods))
	}
	answers := make([]any, len(calls))
	for i, call := range calls {
		answer, failure := e.answer(ctx, e.parse(call, e.methods))
		if failure != nil {
			return nil, failure // also of the calls before it, which have acted
		}
		answers[i] = answer
	}
	return answers, nil
}

func (e *Endpoint) write(w http.ResponseWriter, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		e.log.Debug("answer not written", "error", err)
	}
}

// failHTTP fails a request in the way that rule says.
func (e *Endpoint) failHTTP(w http.ResponseWriter, r *http.Request, rule *fault.Rule) {
	rule.FailHTTP(w, r, e.closed, func() {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(rule.Status)
		e.write(w, fail(nil, statusError(rule)))
	})
}

// statusError is the body of an answer with an HTTP status, as providers write it.
func statusError(rule *fault.Rule) *Error {
	return &Error{Code: rule.Status, Message: http.StatusText(rule.Status)}
}
