package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/relaypool/relaypool/hack/localnet/fault"
)

const (
	// maxBody is the largest body of a request, in bytes.
	maxBody = 256 << 10
	// hugeAnswer is the size of the padding in an answer with the lie Huge, in bytes.
	hugeAnswer = 16 << 20
)

// apiError is the body of an answer with status 400, in Jupiter's form.
type apiError struct {
	Message string `json:"error"`
	Code    string `json:"errorCode,omitempty"`
}

func (e *apiError) Error() string { return e.Message }

// The error codes of Jupiter that the router uses.
const (
	codeNotTradable = "TOKEN_NOT_TRADABLE"
	codeNoRoute     = "COULD_NOT_FIND_ANY_ROUTE"
	codeCircular    = "CIRCULAR_ARBITRAGE_IS_DISABLED"
)

func invalidRequest(message string) error { return &apiError{Message: message} }

func noRoute() error {
	return &apiError{Message: "Could not find any route", Code: codeNoRoute}
}

// handle makes the handler of a call. The handler first applies the faults. It then
// sends the result of answer, or its error, with the lies applied.
func (r *Router) handle(call string, answer func(*http.Request, *draft) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		d, plan := r.draw(call), r.faults.Plan(call)
		req.Body = http.MaxBytesReader(w, req.Body, maxBody)
		if !fault.Wait(req.Context(), plan.Before) {
			return
		}
		if plan.Failure != nil {
			// A gateway answers in plain text and the API in JSON. A client must handle both.
			status := plan.Failure.Status
			plan.Failure.FailHTTP(w, req, nil, func() { http.Error(w, http.StatusText(status), status) })
			return
		}
		out, err := answer(req, d)
		if err == nil {
			r.write(w, http.StatusOK, out, d)
			return
		}
		var refusal *apiError
		if !errors.As(err, &refusal) {
			refusal = &apiError{Message: err.Error()}
		}
		r.mu.Lock()
		r.stats.Refused[refusal.Code]++
		r.mu.Unlock()
		r.write(w, http.StatusBadRequest, refusal, d)
	}
}

// write sends an answer. The lies Garbage, Huge and Truncated replace or break it.
func (r *Router) write(w http.ResponseWriter, status int, answer any, d *draft) {
	body, err := json.Marshal(answer)
	if err != nil {
		r.opts.Log.Error("answer not encoded", "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	contentType := "application/json"
	switch {
	case d.applies(Garbage):
		contentType, body = "text/html", []byte("<html><body>Please wait while we check your browser.</body></html>")
	case d.applies(Huge):
		// The JSON still decodes, so that only its size is wrong.
		body = append(append([]byte(`{"padding":"`), bytes.Repeat([]byte{'x'}, hugeAnswer)...), append([]byte(`",`), body[1:]...)...)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if d.applies(Truncated) {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush() // without the flush the abort discards the first half
		panic(http.ErrAbortHandler)
	}
	if _, err := w.Write(body); err != nil {
		r.opts.Log.Debug("answer not written", "error", err)
	}
}
