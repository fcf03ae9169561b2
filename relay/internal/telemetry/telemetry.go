// Package telemetry is what the person on call sees: structured logs, and
// metrics named in relay/contract. Nothing of a request's content is in either.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/term"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// NewLog makes the process's log: level debug, info, warn or error; format
// json, text, or auto for text when w is a terminal.
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

// Metrics are the relay's own. Every method is safe for concurrent use.
type Metrics struct {
	Registry *prometheus.Registry

	httpRequests *prometheus.CounterVec
	httpDuration *prometheus.HistogramVec
	submissions  *prometheus.CounterVec
	stages       *prometheus.HistogramVec
	attempts     *prometheus.CounterVec
	rpcCalls     *prometheus.CounterVec
	rpcDuration  *prometheus.HistogramVec
	// Without labels, but vectors: they have no sample until they are set, since
	// unknown is not zero.
	treeLeaves *prometheus.GaugeVec
	treeCheck  *prometheus.GaugeVec
}

// Build names what runs.
type Build struct{ Version, Revision string }

// NewMetrics registers all metrics but those that Gauges reads.
func NewMetrics(b Build) *Metrics {
	// From a proof's verification, a millisecond, to a submission that waits for its turn.
	durations := []float64{.0002, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	m := &Metrics{
		Registry:     prometheus.NewRegistry(),
		httpRequests: counter(contract.MetricHTTPRequests),
		httpDuration: histogram(contract.MetricHTTPDuration, durations),
		submissions:  counter(contract.MetricSubmissions),
		stages:       histogram(contract.MetricStages, durations),
		attempts:     counter(contract.MetricAttempts),
		rpcCalls:     counter(contract.MetricRPCCalls),
		rpcDuration:  histogram(contract.MetricRPCDuration, durations),
		treeLeaves:   gauge(contract.MetricTreeLeaves),
		treeCheck:    gauge(contract.MetricTreeCheck),
	}
	info := gauge(contract.MetricBuildInfo)
	info.WithLabelValues(b.Version, b.Revision).Set(1)
	m.Registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info,
		m.httpRequests, m.httpDuration, m.submissions, m.stages, m.attempts, m.rpcCalls, m.rpcDuration, m.treeLeaves, m.treeCheck,
	)
	return m
}

func counter(c contract.Metric) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: c.Name, Help: c.Help}, c.Labels)
}

func histogram(c contract.Metric, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: c.Name, Help: c.Help, Buckets: buckets}, c.Labels)
}

func gauge(c contract.Metric) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: c.Name, Help: c.Help}, c.Labels)
}

// Reading is a gauge's value when it is scraped; ok is false when it is not
// known, and then there is no sample: unknown is not zero.
type Reading func() (value float64, ok bool)

// Read registers a gauge that is read at scrape time.
func (m *Metrics) Read(c contract.Metric, r Reading) {
	m.Registry.MustRegister(&reading{prometheus.NewDesc(c.Name, c.Help, nil, nil), r})
}

type reading struct {
	desc *prometheus.Desc
	read Reading
}

// Describe implements prometheus.Collector.
func (r *reading) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect implements prometheus.Collector.
func (r *reading) Collect(ch chan<- prometheus.Metric) {
	if v, ok := r.read(); ok {
		ch <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, v)
	}
}

// Request implements httpapi.Observer.
func (m *Metrics) Request(method, route string, status int, took time.Duration) {
	m.httpRequests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.httpDuration.WithLabelValues(route, method).Observe(took.Seconds())
}

// Stage implements submission.Observer.
func (m *Metrics) Stage(stage string, took time.Duration) {
	m.stages.WithLabelValues(stage).Observe(took.Seconds())
}

// Outcome implements submission.Observer.
func (m *Metrics) Outcome(kind shieldpool.Kind, outcome string) {
	m.submissions.WithLabelValues(string(kind), outcome).Inc()
}

// Attempt implements submission.Observer.
func (m *Metrics) Attempt(event string) { m.attempts.WithLabelValues(event).Inc() }

// RPC counts a call.
func (m *Metrics) RPC(method, class string, took time.Duration) {
	m.rpcCalls.WithLabelValues(method, class).Inc()
	m.rpcDuration.WithLabelValues(method).Observe(took.Seconds())
}

// Tree tells of a new state of the tree account and whether it agrees with itself.
func (m *Metrics) Tree(leaves uint64, selfCheck error) {
	check := 0.0
	if selfCheck == nil {
		check = 1
	}
	m.treeLeaves.WithLabelValues().Set(float64(leaves))
	m.treeCheck.WithLabelValues().Set(check)
}

// OperationsHandler serves metrics and probes. ready tells why the process is
// not ready, or nil; a process that answers is alive.
func (m *Metrics) OperationsHandler(ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+contract.MetricsPath, promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{Registry: m.Registry}))
	mux.HandleFunc("GET "+contract.LivenessPath, func(w http.ResponseWriter, _ *http.Request) { probe(w, nil) })
	mux.HandleFunc("GET "+contract.ReadinessPath, func(w http.ResponseWriter, _ *http.Request) { probe(w, ready()) })
	return mux
}

func probe(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err) // a probe that has gone away needs no answer
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
