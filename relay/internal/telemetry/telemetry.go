// Package telemetry makes structured logs and the metrics that relay/contract names.
// They contain no content of a request.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/term"

	"github.com/relaypool/relaypool/relay/contract"
)

// NewLog makes the process's log. level is debug, info, warn or error. format is json,
// text, or auto, which is text when w is a terminal and json otherwise.
func NewLog(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level of %d characters is not known: expected debug, info, warn or error", len(level))
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "auto":
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return slog.New(slog.NewTextHandler(w, o)), nil
		}
		return slog.New(slog.NewJSONHandler(w, o)), nil
	default:
		return nil, fmt.Errorf("log format of %d characters is not known: expected auto, json or text", len(format))
	}
}

// OperationsHandler serves metrics, probes, the backlog and the relay's health. ready
// returns why the process is not ready, or nil. A process that answers is alive. details
// serves GET /backlog without rate limits, for autoscalers, and GET /health with all
// details.
func (m *Metrics) OperationsHandler(ready func() error, details http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+contract.BacklogPath, details)
	mux.Handle("GET "+contract.HealthPath, details)
	mux.Handle("GET "+contract.MetricsPath, promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{Registry: m.Registry}))
	mux.HandleFunc("GET "+contract.LivenessPath, func(w http.ResponseWriter, _ *http.Request) { writeProbe(w, nil) })
	mux.HandleFunc("GET "+contract.ReadinessPath, func(w http.ResponseWriter, _ *http.Request) { writeProbe(w, ready()) })
	return mux
}

func writeProbe(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err) // if the prober has disconnected, nobody needs the answer
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
