// Package telemetry makes structured logs and the metrics that relay/contract names.
// They contain no content of a request.
package telemetry

import (
	"cmp"
	"regexp"
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

// Metrics are the relay's own metrics. Every method is safe for concurrent use.
type Metrics struct {
	Registry *prometheus.Registry

	httpRequests   *prometheus.CounterVec
	httpDuration   *prometheus.HistogramVec
	clientRequests *prometheus.CounterVec

	submissions *prometheus.CounterVec
	finalized   *prometheus.CounterVec
	stages      *prometheus.HistogramVec
	landing     *prometheus.HistogramVec
	landingCost *prometheus.CounterVec
	laneExpired *prometheus.CounterVec
	attempts    *prometheus.CounterVec
	leases      *prometheus.CounterVec
	leaseLapses *prometheus.CounterVec
	polls       *prometheus.CounterVec
	pollSize    *prometheus.HistogramVec

	rpcCalls          *prometheus.CounterVec
	rpcDuration       *prometheus.HistogramVec
	rpcBreaker        *prometheus.CounterVec
	rpcSkipped        *prometheus.CounterVec
	rpcContradictions *prometheus.CounterVec
	rpcNotified       *prometheus.CounterVec

	swapsEnded     *prometheus.CounterVec
	swapDeferrals  *prometheus.CounterVec
	routerRequests *prometheus.CounterVec
	routerDuration *prometheus.HistogramVec
	signerDuration *prometheus.HistogramVec
	routesRejected *prometheus.CounterVec

	maintenanceRuns     *prometheus.CounterVec
	maintenanceDuration *prometheus.HistogramVec
	deleted             *prometheus.CounterVec
	ledgerEntries       *prometheus.CounterVec

	// The next two have no labels, but are vectors: a vector has no sample until its value is
	// set, while a plain gauge would show an unknown value as zero.
	treeLeaves *prometheus.GaugeVec
	treeCheck  *prometheus.GaugeVec
}

// Build identifies the running build.
type Build struct{ Version, Revision string }

// durationBuckets range from the verification of a proof, about a millisecond, to a
// submission that waits in the queue.
func durationBuckets() []float64 {
	return []float64{.0002, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
}

// NewMetrics registers all metrics except those of RegisterGaugeFunc and RegisterVecFunc.
func NewMetrics(b Build) *Metrics {
	r := prometheus.NewRegistry()
	live := collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)} // what the last collection left
	r.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(live)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	durations := durationBuckets()
	m := &Metrics{
		Registry:       r,
		httpRequests:   counter(r, contract.MetricHTTPRequests),
		httpDuration:   histogram(r, contract.MetricHTTPDuration, durations),
		clientRequests: counter(r, contract.MetricClientRequests),
		submissions:    counter(r, contract.MetricSubmissions),
		finalized:      counter(r, contract.MetricSubmissionsFinalized),
		stages:         histogram(r, contract.MetricStages, durations),
		attempts:       counter(r, contract.MetricAttempts),
		landing:        histogram(r, contract.MetricLandingSlots, []float64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 150}),
		landingCost:    counter(r, contract.MetricLandingLamports),
		laneExpired:    counter(r, contract.MetricLaneExpired),
		leases:         counter(r, contract.MetricLeases),
		leaseLapses:    counter(r, contract.MetricLeaseLapses),
		polls:          counter(r, contract.MetricPolls),
		pollSize:       histogram(r, contract.MetricPollSize, []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}),

		rpcCalls:          counter(r, contract.MetricRPCCalls),
		rpcDuration:       histogram(r, contract.MetricRPCDuration, durations),
		rpcBreaker:        counter(r, contract.MetricRPCBreaker),
		rpcSkipped:        counter(r, contract.MetricRPCSkipped),
		rpcContradictions: counter(r, contract.MetricRPCContradictions),
		rpcNotified:       counter(r, contract.MetricRPCNotifications),

		swapsEnded:     counter(r, contract.MetricSwapsEnded),
		swapDeferrals:  counter(r, contract.MetricSwapWaits),
		routerRequests: counter(r, contract.MetricRouterRequests),
		routerDuration: histogram(r, contract.MetricRouterDuration, durations),
		signerDuration: histogram(r, contract.MetricSignerDuration, durations),
		routesRejected: counter(r, contract.MetricRouterRejected),

		maintenanceRuns:     counter(r, contract.MetricMaintenanceRuns),
		maintenanceDuration: histogram(r, contract.MetricMaintenanceDuration, durations),
		deleted:             counter(r, contract.MetricDeleted),
		ledgerEntries:       counter(r, contract.MetricLedgerEntries),

		treeLeaves: gauge(r, contract.MetricTreeLeaves),
		treeCheck:  gauge(r, contract.MetricTreeCheck),
	}
	gauge(r, contract.MetricBuildInfo).WithLabelValues(b.Version, b.Revision).Set(1)
	m.startAtZero()
	return m
}

// startAtZero makes samples of counters whose label values are known: an alert on an increase
// misses a counter that first appears at 1.
func (m *Metrics) startAtZero() {
	for _, event := range []string{"signed", "early", "refused", "rebroadcast", "expired", "failed_on_chain", "adopted", "reopened", "held", "panic"} {
		m.attempts.WithLabelValues(event)
	}
	for _, event := range []string{"claimed", "lost", "reaped", "orphaned", "handed_over"} {
		m.leases.WithLabelValues(event)
	}
	m.leaseLapses.WithLabelValues()
	m.InitLane(noLane)
	for _, outcome := range []string{"executed", "refunded"} {
		m.swapsEnded.WithLabelValues(outcome)
	}
	for _, reason := range swap.Reasons() {
		m.swapDeferrals.WithLabelValues(reason)
	}
	for _, rejectReason := range swap.RejectedReasons() {
		m.routesRejected.WithLabelValues(rejectReason)
	}
	// A job that never ran also needs a sample, for alerts on a counter that does not increase.
	for _, job := range []string{"ledger", "retention"} {
		m.maintenanceRuns.WithLabelValues(job, outcomeDone)
		m.maintenanceRuns.WithLabelValues(job, outcomeFailed)
	}
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

// GaugeValue returns a gauge's present value. ok is false when the value is unknown: then the
// gauge has no sample.
type GaugeValue func() (value float64, ok bool)

// RegisterGaugeFunc registers a gauge without labels. Every scrape calls read.
func (m *Metrics) RegisterGaugeFunc(c contract.Metric, read GaugeValue) {
	m.RegisterVecFunc(c, func(sample Sample) {
		if v, ok := read(); ok {
			sample(v)
		}
	})
}

// Sample adds one value of a metric, with the values of its labels in the contract's order.
type Sample func(value float64, labels ...string)

// Timestamp returns a time in the unit of metrics: seconds since 1970.
func Timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// RegisterVecFunc registers a gauge, or a counter if its name ends with _total. Every
// scrape calls collect, and collect calls sample once for each known value.
func (m *Metrics) RegisterVecFunc(c contract.Metric, collect func(sample Sample)) {
	kind := prometheus.GaugeValue
	if strings.HasSuffix(c.Name, "_total") {
		kind = prometheus.CounterValue
	}
	m.Registry.MustRegister(&funcCollector{prometheus.NewDesc(c.Name, c.Help, c.Labels, nil), kind, collect})
}

type funcCollector struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	collect func(sample Sample)
}

// Describe implements prometheus.Collector.
func (f *funcCollector) Describe(ch chan<- *prometheus.Desc) { ch <- f.desc }

// Collect implements prometheus.Collector.
func (f *funcCollector) Collect(ch chan<- prometheus.Metric) {
	f.collect(func(value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
	})
}

// Request implements httpapi.Observer.
func (m *Metrics) Request(method, route string, status int, took time.Duration) {
	m.httpRequests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.httpDuration.WithLabelValues(route, method).Observe(took.Seconds())
}

// ClientRequest implements httpapi.Observer.
func (m *Metrics) ClientRequest(keyName string, status int) {
	m.clientRequests.WithLabelValues(keyName, strconv.Itoa(status)).Inc()
}

// Stage implements submission.Observer.
func (m *Metrics) Stage(stage string, took time.Duration) {
	m.stages.WithLabelValues(stage).Observe(took.Seconds())
}

// Outcome implements submission.Observer.
func (m *Metrics) Outcome(kind shieldpool.Kind, outcome string) {
	switch {
	case kind == submission.KindSwapExecution && outcome == "finalized": // the swap is already counted
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
	if event == "lapsed" { // all leases of the process expired at once
		m.leaseLapses.WithLabelValues().Add(float64(n))
		return
	}
	m.leases.WithLabelValues(event).Add(float64(n))
}

// LandedAfter implements txmgr.Observer.
func (m *Metrics) LandedAfter(lane string, slots, lamports uint64) {
	lane = cmp.Or(lane, noLane)
	m.landing.WithLabelValues(lane).Observe(float64(slots))
	m.landingCost.WithLabelValues(lane).Add(float64(lamports))
}

// LaneExpired implements txmgr.Observer.
func (m *Metrics) LaneExpired(lane string) { m.laneExpired.WithLabelValues(cmp.Or(lane, noLane)).Inc() }

// InitLane starts the figures of a lane at zero.
func (m *Metrics) InitLane(name string) {
	m.landing.WithLabelValues(name)
	m.landingCost.WithLabelValues(name)
	m.laneExpired.WithLabelValues(name)
}

// noLane is the label of transactions without a lane.
const noLane = "rpc"

// Poll implements submission.Observer.
func (m *Metrics) Poll(signatures int, notified bool) {
	cause := "slot"
	if notified {
		cause = "notification"
	}
	m.polls.WithLabelValues(cause).Inc()
	m.pollSize.WithLabelValues().Observe(float64(signatures))
}

// InitEndpoint starts the counters of an endpoint at zero.
func (m *Metrics) InitEndpoint(name string) {
	for _, state := range []outbound.State{outbound.Closed, outbound.HalfOpen, outbound.Open} {
		m.rpcBreaker.WithLabelValues(name, string(state))
	}
	m.rpcSkipped.WithLabelValues(name)
	m.rpcContradictions.WithLabelValues(name)
	m.rpcNotified.WithLabelValues(name)
}

// RPCCalled counts a call at an endpoint.
func (m *Metrics) RPCCalled(endpoint, method, class string, took time.Duration) {
	m.rpcCalls.WithLabelValues(endpoint, method, class).Inc()
	m.rpcDuration.WithLabelValues(endpoint, method).Observe(took.Seconds())
}

// BreakerStateChanged counts a change of an endpoint's breaker to closed, half_open or open.
func (m *Metrics) BreakerStateChanged(endpoint, state string) {
	m.rpcBreaker.WithLabelValues(endpoint, state).Inc()
}

// RebroadcastSkipped counts a rebroadcast that the endpoint's budget did not allow.
func (m *Metrics) RebroadcastSkipped(endpoint string) { m.rpcSkipped.WithLabelValues(endpoint).Inc() }

// EndpointContradicted counts an answer of the endpoint that others contradict.
func (m *Metrics) EndpointContradicted(endpoint string) {
	m.rpcContradictions.WithLabelValues(endpoint).Inc()
}

// NotificationReceived counts a notification of the endpoint.
func (m *Metrics) NotificationReceived(endpoint string) {
	m.rpcNotified.WithLabelValues(endpoint).Inc()
}

// SwapDeferred counts a deferred swap, by one of a fixed set of reasons.
func (m *Metrics) SwapDeferred(reason string) { m.swapDeferrals.WithLabelValues(reason).Inc() }

// RouterCalled implements router.Observer.
func (m *Metrics) RouterCalled(router, call, outcome string, took time.Duration) {
	m.routerRequests.WithLabelValues(router, call, outcome).Inc()
	m.routerDuration.WithLabelValues(router, call).Observe(took.Seconds())
}

// RouterSkipped implements router.Observer.
func (m *Metrics) RouterSkipped(router, call, kind string) {
	m.routerRequests.WithLabelValues(router, call, kind).Inc()
}

// RouteRejected implements router.Observer. It also counts faults of a route that are found
// after the router's answer was decoded. reason is one of swap.RejectedReasons.
func (m *Metrics) RouteRejected(reason string) { m.routesRejected.WithLabelValues(reason).Inc() }

// These are the outcomes of a maintenance job's run.
const (
	outcomeDone   = "done"
	outcomeFailed = "failed"
)

// MaintenanceRan counts a run of a maintenance job; err is nil when it succeeded.
func (m *Metrics) MaintenanceRan(job string, took time.Duration, err error) {
	outcome := outcomeDone
	if err != nil {
		outcome = outcomeFailed
	}
	m.maintenanceRuns.WithLabelValues(job, outcome).Inc()
	m.maintenanceDuration.WithLabelValues(job).Observe(took.Seconds())
}

// RowsDeleted counts rows that retention deleted.
func (m *Metrics) RowsDeleted(table string, n int64) {
	m.deleted.WithLabelValues(table).Add(float64(n))
}

// LedgerEntryAdded counts a transaction entered into the ledger.
func (m *Metrics) LedgerEntryAdded(kind string) { m.ledgerEntries.WithLabelValues(kind).Inc() }

// TreeObserved records a new state of the tree account, and whether it passes its self-check.
func (m *Metrics) TreeObserved(leaves uint64, selfCheck error) {
	check := 0.0
	if selfCheck == nil {
		check = 1
	}
	m.treeLeaves.WithLabelValues().Set(float64(leaves))
	m.treeCheck.WithLabelValues().Set(check)
}

// SignerCalled records a call for a signature.
func (m *Metrics) SignerCalled(signer, outcome string, took time.Duration) {
	m.signerDuration.WithLabelValues(signer, outcome).Observe(took.Seconds())
}
