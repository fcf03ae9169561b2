package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

const (
	// unmatched is the route label of an unknown path. The path itself is the client's text,
	// and must not be logged.
	unmatched = "unmatched"
	// statusClientClosed is the status in log and metrics when the client left before the
	// answer; no client receives it.
	statusClientClosed = 499
)

// observe counts the request and logs it: POST requests and server errors at Info,
// others at Debug. It logs neither the path nor the address.
func (a *api) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := a.Now()
		recorder := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer a.observed(r, recorder, began) // also of an answer that is broken off
		next.ServeHTTP(recorder, r)
	})
}

func (a *api) observed(r *http.Request, recorder middleware.WrapResponseWriter, began time.Time) {
	took, method, route := a.Now().Sub(began), methodLabel(r.Method), routeLabel(r)
	status := recorder.Status()
	if status == 0 {
		status = http.StatusOK
	}
	a.Observer.Request(method, route, status, took)

	level := slog.LevelDebug
	if r.Method == http.MethodPost || status >= http.StatusInternalServerError {
		level = slog.LevelInfo
	}
	x := requestContextOf(r.Context())
	attrs := []slog.Attr{
		slog.String("request_id", x.id), slog.String("method", method), slog.String("route", route),
		slog.Int("status", status), slog.Duration("duration", took),
	}
	if x.key != nil && x.key.Name != "" {
		a.Observer.ClientRequest(x.key.Name, status)
		attrs = append(attrs, slog.String("api_key", x.key.Name))
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("code", string(x.code)))
	}
	a.Log.LogAttrs(r.Context(), level, "request answered", attrs...)
}

// methodLabel keeps made-up methods out of logs and labels.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return method
	default:
		return "other"
	}
}

func routeLabel(r *http.Request) string {
	if rctx := chi.RouteContext(r.Context()); rctx != nil && len(rctx.RoutePatterns) > 0 {
		return rctx.RoutePattern()
	}
	return unmatched
}
