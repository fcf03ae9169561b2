package externalmetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/relay/contract"
)

// outcome is the outcome of a request, as a metric's label.
type outcome string

const (
	outcomeServed   outcome = "served"
	outcomeUnknown  outcome = "unknown"
	outcomeRefused  outcome = "refused"
	outcomeNotReady outcome = "not_ready"
	outcomeStale    outcome = "stale"
	outcomeFailed   outcome = "failed"
)

// outcomes counts the requests by metric and outcome.
type outcomes struct{ *prometheus.CounterVec }

func newOutcomes() *outcomes {
	m := contract.MetricOperatorExternalRequests
	o := &outcomes{prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)}
	// The series exist from the start, so that Prometheus sees the first failure as an increase.
	for metric := range valueFuncs() {
		for _, result := range []outcome{outcomeServed, outcomeUnknown, outcomeRefused, outcomeNotReady, outcomeStale, outcomeFailed} {
			o.WithLabelValues(metric, string(result))
		}
	}
	return o
}

// count counts a request. A request may ask for a metric of any name, so all unknown metrics are
// counted under one name, other.
func (o *outcomes) count(metric string, result outcome) {
	if valueFuncs()[metric] == nil {
		metric = "other"
	}
	o.WithLabelValues(metric, string(result)).Inc()
}

// Certificate returns when the served certificate expires, and the zero time if none is served.
// servingcert.Keeper implements it.
type Certificate interface{ Expires() time.Time }

// Collector is a prometheus.Collector of the requests, of the times at which backlogs were
// read, and of the certificate's expiry.
type Collector struct {
	provider         *Provider
	certificate      Certificate
	readTime, expiry *prometheus.Desc

	mutex sync.Mutex
	// unreadSince is when a fleet was first seen with ready pods and without a reading.
	unreadSince map[types.NamespacedName]time.Time
}

// NewCollector makes the metrics of a Provider and its certificate.
func NewCollector(p *Provider, c Certificate) *Collector {
	desc := func(m contract.Metric) *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }
	return &Collector{
		provider: p, certificate: c, unreadSince: map[types.NamespacedName]time.Time{},
		readTime: desc(contract.MetricOperatorBacklogRead), expiry: desc(contract.MetricOperatorCertificateExpiry),
	}
}

// Describe sends the descriptions of all series.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	c.provider.outcomes.Describe(out)
	out <- c.readTime
	out <- c.expiry
}

// Collect sends the counts of requests, the times of readings and the certificate's expiry.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.provider.outcomes.Collect(out)
	for key, at := range c.readTimes(c.provider.Now()) {
		out <- prometheus.MustNewConstMetric(c.readTime, prometheus.GaugeValue, timestamp(at), key.Namespace, key.Name)
	}
	if expires := c.certificate.Expires(); !expires.IsZero() {
		out <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, timestamp(expires))
	}
}

// timestamp returns a time in the unit of metrics: seconds since 1970.
func timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// readTimes returns when each fleet's backlog was last read. For a backlog that was never read,
// it returns when the fleet was first seen with a ready pod. If it left out such a fleet, a process
// that never reached the pods would report nothing, and the autoscalers' requests to that process
// would fail without an alert.
func (c *Collector) readTimes(now time.Time) map[types.NamespacedName]time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all, unread := map[types.NamespacedName]time.Time{}, map[types.NamespacedName]time.Time{}
	for key, reading := range c.provider.Readings.Watched() {
		at := reading.At
		if isNeverRead(&reading) {
			at = now
			if first, seen := c.unreadSince[key]; seen {
				at = first
			}
			unread[key] = at
		}
		if !at.IsZero() {
			all[key] = at
		}
	}
	c.unreadSince = unread
	return all
}

// isNeverRead reports whether a fleet has no reading although its pods could be polled.
func isNeverRead(r *pool.Reading) bool { return r.At.IsZero() && r.Ready > 0 }
