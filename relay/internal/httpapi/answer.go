package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

// defaultRetryAfter is the Retry-After of a temporary refusal that does not set one.
const defaultRetryAfter = 5 * time.Second

// answer encodes v before it writes anything, so that an encoding error can still be
// answered as an internal error.
func (a *api) answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	// HTML escaping would make messages such as "publicAmount < 0" hard to read. It is not
	// needed, because no browser parses the answer as HTML.
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	// A failed write means that the client has disconnected: nothing else can be sent.
	_, _ = w.Write(body.Bytes())
}

// fail answers with an error: a refusal is sent as it is; any other error is logged and sent as
// an internal error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if ref, ok := refusal.As(err); ok {
		a.refuse(w, r, ref)
		return
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		w.WriteHeader(statusClientClosed)
		return
	}
	a.Log.ErrorContext(r.Context(), "answering a request failed", "request_id", requestContextOf(r.Context()).id, "error", err)
	a.internal(w, r)
}

// refuse sends a refusal's envelope. The refusal's cause is logged, but not sent.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, ref *refusal.Refusal) {
	status, x := ref.Code.HTTPStatus(), requestContextOf(r.Context())
	x.code = ref.Code
	if ref.Cause != nil {
		level := slog.LevelDebug
		if status >= http.StatusInternalServerError {
			level = slog.LevelWarn
		}
		a.Log.Log(r.Context(), level, "request refused", "request_id", x.id, "code", string(ref.Code), "cause", ref.Cause)
	}
	after := ref.RetryAfter
	if after <= 0 && (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) {
		after = defaultRetryAfter
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
	}
	envelope := make(map[string]any, len(ref.Fields)+3)
	for name, value := range ref.Fields {
		envelope[name] = value
	}
	envelope["error"], envelope["code"], envelope["message"] = true, ref.Code, ref.Message
	a.answer(w, r, status, envelope)
}

// internal answers with the request id and without details of the error.
func (a *api) internal(w http.ResponseWriter, r *http.Request) {
	x := requestContextOf(r.Context())
	x.code = refusal.Internal
	a.answer(w, r, http.StatusInternalServerError, openapi.Error{
		Error: true, Code: openapi.ErrorCodeInternal, RequestID: &x.id,
		Message: "the relay failed to answer: the cause is not your request. Send it again, and report the request_id to the relay's operator if it fails again",
	})
}

// badParameter answers a request with a parameter that the generated server refuses. The
// generated errors contain the value, so only their kind is reported.
func (a *api) badParameter(w http.ResponseWriter, r *http.Request, err error) {
	var (
		malformed *openapi.InvalidParamFormatError
		repeated  *openapi.TooManyValuesForParamError
	)
	switch {
	case errors.As(err, &malformed):
		a.refuse(w, r, refusal.New(refusal.InvalidRequest, "%s is malformed: expected %s", malformed.ParamName, expectedValue(malformed.ParamName)))
	case errors.As(err, &repeated):
		a.refuse(w, r, refusal.New(refusal.InvalidRequest, "%s is present %d times: expected once", repeated.ParamName, repeated.Count))
	default:
		a.refuse(w, r, refusal.New(refusal.InvalidRequest, "a parameter of the request is missing or malformed: expected the parameters that the API's document describes"))
	}
}

// expectedValue describes the valid values of a parameter.
func expectedValue(parameter string) string {
	switch parameter {
	case "id":
		return "a UUID of 36 characters, the request_id of a submission"
	case "from_index", "fromIndex", "limit":
		return "one whole number"
	default:
		return "one text value"
	}
}
