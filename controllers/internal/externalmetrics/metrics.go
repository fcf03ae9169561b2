package externalmetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/relay/contract"
)

// outcome is how a request ended, as a metric's label has it.
type outcome string

const (
	served   outcome = "served"
	unknown  outcome = "unknown"
	refused  outcome = "refused"
	notReady outcome = "not_ready"
	stale    outcome = "stale"
	failed   outcome = "failed"
)

// outcomes counts the requests.
type outcomes struct{ *prometheus.CounterVec }

func newOutcomes() *outcomes {
	m := contract.MetricOperatorExternalRequests
	o := &outcomes{prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)}
	// From the start, so that the first failure is a rise.
	for metric := range figures() {
		for _, as := range []outcome{served, unknown, refused, notReady, stale, failed} {
			o.WithLabelValues(metric, string(as))
		}
	}
	return o
}

// count notes a request. A metric that there is not may have any name, and is
// counted as one.
func (o *outcomes) count(metric string, as outcome) {
	if figures()[metric] == nil {
		metric = "other"
	}
	o.WithLabelValues(metric, string(as)).Inc()
}

// Certificate tells when what is served is no longer valid, zero when nothing is;
// servingcert.Keeper does.
type Certificate interface{ Expires() time.Time }

// Collector is a prometheus.Collector of what is served.
type Collector struct {
	provider     *Provider
	certificate  Certificate
	read, expiry *prometheus.Desc

	mutex sync.Mutex
	// unread is since when fleets have been seen with pods to ask, and no reading.
	unread map[types.NamespacedName]time.Time
}

// NewCollector makes the metrics of a Provider and its certificate.
func NewCollector(p *Provider, c Certificate) *Collector {
	desc := func(m contract.Metric) *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }
	return &Collector{
		provider: p, certificate: c, unread: map[types.NamespacedName]time.Time{},
		read: desc(contract.MetricOperatorBacklogRead), expiry: desc(contract.MetricOperatorCertificateExpiry),
	}
}

// Describe sends the descriptions of all series.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	c.provider.outcomes.Describe(out)
	out <- c.read
	out <- c.expiry
}

// Collect gives the requests so far, and the times.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.provider.outcomes.Collect(out)
	for key, since := range c.since(c.provider.Now()) {
		out <- prometheus.MustNewConstMetric(c.read, prometheus.GaugeValue, timestamp(since), key.Namespace, key.Name)
	}
	if expires := c.certificate.Expires(); !expires.IsZero() {
		out <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, timestamp(expires))
	}
}

// timestamp gives a time as metrics have it: in seconds since 1970.
func timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// since is when each fleet's backlog was read last. One that has never been read
// counts from when it was first seen with a pod to ask: a process that cannot reach
// the pods from its start on would otherwise say nothing, and half of the autoscalers'
// questions fail without anybody's being told.
func (c *Collector) since(now time.Time) map[types.NamespacedName]time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all, unread := map[types.NamespacedName]time.Time{}, map[types.NamespacedName]time.Time{}
	for key, reading := range c.provider.Readings.Watched() {
		at := reading.At
		if neverRead(&reading) {
			at = now
			if first, seen := c.unread[key]; seen {
				at = first
			}
			unread[key] = at
		}
		if !at.IsZero() {
			all[key] = at
		}
	}
	c.unread = unread
	return all
}

// neverRead tells a fleet whose pods could have been asked.
func neverRead(r *pool.Reading) bool { return r.At.IsZero() && r.Ready > 0 }
