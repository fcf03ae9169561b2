package telemetry

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Metrics are the relay's own. Every method is safe for concurrent use.
type Metrics struct {
	Registry *prometheus.Registry

	httpRequests *prometheus.CounterVec
	httpDuration *prometheus.HistogramVec

	submissions *prometheus.CounterVec
	finalized   *prometheus.CounterVec
	stages      *prometheus.HistogramVec
	attempts    *prometheus.CounterVec
	leases      *prometheus.CounterVec
	leaseLapses *prometheus.CounterVec
	polls       *prometheus.CounterVec
	pollSize    *prometheus.HistogramVec

	rpcCalls    *prometheus.CounterVec
	rpcDuration *prometheus.HistogramVec
	rpcBreaker  *prometheus.CounterVec
	rpcSkipped  *prometheus.CounterVec
	rpcDisputes *prometheus.CounterVec
	rpcNotified *prometheus.CounterVec

	swapsEnded     *prometheus.CounterVec
	swapWaits      *prometheus.CounterVec
	routerRequests *prometheus.CounterVec
	routerDuration *prometheus.HistogramVec
	routesRejected *prometheus.CounterVec

	upkeepRuns     *prometheus.CounterVec
	upkeepDuration *prometheus.HistogramVec
	deleted        *prometheus.CounterVec
	entries        *prometheus.CounterVec

	// Without labels, but vectors: they have no sample until they are set, since
	// unknown is not zero.
	treeLeaves *prometheus.GaugeVec
	treeCheck  *prometheus.GaugeVec
}

// Build names what runs.
type Build struct{ Version, Revision string }

// NewMetrics registers all metrics but those that Read and ReadEach add.
func NewMetrics(b Build) *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// From a proof's verification, a millisecond, to a submission that waits for its turn.
	durations := []float64{.0002, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	m := &Metrics{
		Registry:     r,
		httpRequests: counter(r, contract.MetricHTTPRequests),
		httpDuration: histogram(r, contract.MetricHTTPDuration, durations),

		submissions: counter(r, contract.MetricSubmissions),
		finalized:   counter(r, contract.MetricSubmissionsFinalized),
		stages:      histogram(r, contract.MetricStages, durations),
		attempts:    counter(r, contract.MetricAttempts),
		leases:      counter(r, contract.MetricLeases),
		leaseLapses: counter(r, contract.MetricLeaseLapses),
		polls:       counter(r, contract.MetricPolls),
		pollSize:    histogram(r, contract.MetricPollSize, []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}),

		rpcCalls:    counter(r, contract.MetricRPCCalls),
		rpcDuration: histogram(r, contract.MetricRPCDuration, durations),
		rpcBreaker:  counter(r, contract.MetricRPCBreaker),
		rpcSkipped:  counter(r, contract.MetricRPCSkipped),
		rpcDisputes: counter(r, contract.MetricRPCContradictions),
		rpcNotified: counter(r, contract.MetricRPCNotifications),

		swapsEnded:     counter(r, contract.MetricSwapsEnded),
		swapWaits:      counter(r, contract.MetricSwapWaits),
		routerRequests: counter(r, contract.MetricRouterRequests),
		routerDuration: histogram(r, contract.MetricRouterDuration, durations),
		routesRejected: counter(r, contract.MetricRouterRejected),

		upkeepRuns:     counter(r, contract.MetricMaintenanceRuns),
		upkeepDuration: histogram(r, contract.MetricMaintenanceDuration, durations),
		deleted:        counter(r, contract.MetricDeleted),
		entries:        counter(r, contract.MetricLedgerEntries),

		treeLeaves: gauge(r, contract.MetricTreeLeaves),
		treeCheck:  gauge(r, contract.MetricTreeCheck),
	}
	gauge(r, contract.MetricBuildInfo).WithLabelValues(b.Version, b.Revision).Set(1)
	// An event that has not happened is zero, and known to be: an alert on a rise
	// misses a counter's first step from nothing.
	for _, event := range []string{"signed", "refused", "rebroadcast", "expired", "failed_on_chain", "adopted", "reopened", "held", "panic"} {
		m.attempts.WithLabelValues(event)
	}
	for _, event := range []string{"claimed", "lost", "reaped", "orphaned", "handed_over"} {
		m.leases.WithLabelValues(event)
	}
	m.leaseLapses.WithLabelValues()
	for _, outcome := range []string{"executed", "refunded"} {
		m.swapsEnded.WithLabelValues(outcome)
	}
	for _, reason := range swap.Reasons() {
		m.swapWaits.WithLabelValues(reason)
	}
	for _, what := range swap.RejectedReasons() {
		m.routesRejected.WithLabelValues(what)
	}
	// A job that has never been done is what an alert on no rise is for.
	for _, job := range []string{"ledger", "retention"} {
		m.upkeepRuns.WithLabelValues(job, done)
		m.upkeepRuns.WithLabelValues(job, failed)
	}
	return m
}

func counter(r prometheus.Registerer, c contract.Metric) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: c.Name, Help: c.Help}, c.Labels)
	r.MustRegister(v)
	return v
}

func histogram(r prometheus.Registerer, c contract.Metric, buckets []float64) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: c.Name, Help: c.Help, Buckets: buckets}, c.Labels)
	r.MustRegister(v)
	return v
}

func gauge(r prometheus.Registerer, c contract.Metric) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: c.Name, Help: c.Help}, c.Labels)
	r.MustRegister(v)
	return v
}

// Reading is a gauge's value when it is scraped; ok is false when it is not
// known, and then there is no sample: unknown is not zero.
type Reading func() (value float64, ok bool)

// Read registers a gauge without labels that is read at scrape time.
func (m *Metrics) Read(c contract.Metric, r Reading) {
	m.ReadEach(c, func(sample Sample) {
		if v, ok := r(); ok {
			sample(v)
		}
	})
}

// Sample gives one value of a metric, with its labels' values in the contract's order.
type Sample func(value float64, labels ...string)

// Timestamp gives a time as metrics have it: in seconds since 1970.
func Timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// ReadEach registers a gauge, or a counter if its name ends with _total, that
// is read at scrape time: each calls sample for every value that is known.
func (m *Metrics) ReadEach(c contract.Metric, each func(sample Sample)) {
	kind := prometheus.GaugeValue
	if strings.HasSuffix(c.Name, "_total") {
		kind = prometheus.CounterValue
	}
	m.Registry.MustRegister(&reading{prometheus.NewDesc(c.Name, c.Help, c.Labels, nil), kind, each})
}

type reading struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	each func(sample Sample)
}

// Describe implements prometheus.Collector.
func (r *reading) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect implements prometheus.Collector.
func (r *reading) Collect(ch chan<- prometheus.Metric) {
	r.each(func(value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(r.desc, r.kind, value, labels...)
	})
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
	switch {
	case kind == submission.KindSwapExecution && outcome == "finalized": // the swap is counted already
	case kind == submission.KindSwapExecution:
		m.swapsEnded.WithLabelValues(outcome).Inc()
	case outcome == "finalized":
		m.finalized.WithLabelValues(string(kind)).Inc()
	default:
		m.submissions.WithLabelValues(string(kind), outcome).Inc()
	}
}

// Attempt implements submission.Observer.
func (m *Metrics) Attempt(event string) { m.attempts.WithLabelValues(event).Inc() }

// Lease implements submission.Observer.
func (m *Metrics) Lease(event string, n int) {
	if event == "lapsed" { // a time, of all leases
		m.leaseLapses.WithLabelValues().Add(float64(n))
		return
	}
	m.leases.WithLabelValues(event).Add(float64(n))
}

// Poll implements submission.Observer.
func (m *Metrics) Poll(signatures int, notified bool) {
	cause := "slot"
	if notified {
		cause = "notification"
	}
	m.polls.WithLabelValues(cause).Inc()
	m.pollSize.WithLabelValues().Observe(float64(signatures))
}

// Endpoint makes the counters of an endpoint known at zero, as NewMetrics does others.
func (m *Metrics) Endpoint(name string) {
	for _, state := range []outbound.State{outbound.Closed, outbound.HalfOpen, outbound.Open} {
		m.rpcBreaker.WithLabelValues(name, string(state))
	}
	m.rpcSkipped.WithLabelValues(name)
	m.rpcDisputes.WithLabelValues(name)
	m.rpcNotified.WithLabelValues(name)
}

// Called counts a call at an endpoint.
func (m *Metrics) Called(endpoint, method, class string, took time.Duration) {
	m.rpcCalls.WithLabelValues(endpoint, method, class).Inc()
	m.rpcDuration.WithLabelValues(endpoint, method).Observe(took.Seconds())
}

// BreakerTurned counts a change of an endpoint's breaker to closed, half_open or open.
func (m *Metrics) BreakerTurned(endpoint, state string) {
	m.rpcBreaker.WithLabelValues(endpoint, state).Inc()
}

// RebroadcastSkipped counts a rebroadcast that the endpoint's budget had no room for.
func (m *Metrics) RebroadcastSkipped(endpoint string) { m.rpcSkipped.WithLabelValues(endpoint).Inc() }

// Contradicted counts what the endpoint said and others say otherwise.
func (m *Metrics) Contradicted(endpoint string) { m.rpcDisputes.WithLabelValues(endpoint).Inc() }

// Notified counts a notification of the endpoint.
func (m *Metrics) Notified(endpoint string) { m.rpcNotified.WithLabelValues(endpoint).Inc() }

// SwapDeferred counts a swap put off, by one of a fixed set of reasons.
func (m *Metrics) SwapDeferred(reason string) { m.swapWaits.WithLabelValues(reason).Inc() }

// RouterCalled implements router.Observer.
func (m *Metrics) RouterCalled(call, outcome string, took time.Duration) {
	m.routerRequests.WithLabelValues(call, outcome).Inc()
	m.routerDuration.WithLabelValues(call).Observe(took.Seconds())
}

// RouterSkipped implements router.Observer.
func (m *Metrics) RouterSkipped(call, kind string) {
	m.routerRequests.WithLabelValues(call, kind).Inc()
}

// RouteRejected implements router.Observer, and counts what is found wrong with a
// route later: what is one of swap.RejectedReasons.
func (m *Metrics) RouteRejected(what string) { m.routesRejected.WithLabelValues(what).Inc() }

// The outcomes of a run of upkeep.
const (
	done   = "done"
	failed = "failed"
)

// UpkeepRan counts a run of an upkeep job; err is nil for one that is done.
func (m *Metrics) UpkeepRan(job string, took time.Duration, err error) {
	outcome := done
	if err != nil {
		outcome = failed
	}
	m.upkeepRuns.WithLabelValues(job, outcome).Inc()
	m.upkeepDuration.WithLabelValues(job).Observe(took.Seconds())
}

// Deleted counts rows that retention deleted.
func (m *Metrics) Deleted(table string, n int64) { m.deleted.WithLabelValues(table).Add(float64(n)) }

// LedgerEntry counts a transaction entered into the ledger.
func (m *Metrics) LedgerEntry(kind string) { m.entries.WithLabelValues(kind).Inc() }

// Tree tells of a new state of the tree account and whether it agrees with itself.
func (m *Metrics) Tree(leaves uint64, selfCheck error) {
	check := 0.0
	if selfCheck == nil {
		check = 1
	}
	m.treeLeaves.WithLabelValues().Set(float64(leaves))
	m.treeCheck.WithLabelValues().Set(check)
}
