package telemetry

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/relaypool/relaypool/relay/contract"
)

// OperationsHandler serves metrics, probes, the backlog and the relay's health. ready
// returns the reason why the process is not ready, or nil. Liveness needs no check: a process
// that answers is alive. details serves GET /backlog without rate limits, for autoscalers, and
// GET /health with all details.
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
