package externalmetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	provider    *Provider
	certificate Certificate
	age, expiry *prometheus.Desc
}

// NewCollector makes the metrics of a Provider and its certificate.
func NewCollector(p *Provider, c Certificate) *Collector {
	desc := func(m contract.Metric) *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }
	return &Collector{
		provider: p, certificate: c,
		age: desc(contract.MetricOperatorBacklogAge), expiry: desc(contract.MetricOperatorCertificateExpiry),
	}
}

// Describe sends the descriptions of all series.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	c.provider.outcomes.Describe(out)
	out <- c.age
	out <- c.expiry
}

// Collect gives the requests so far, and the ages now.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.provider.outcomes.Collect(out)
	now := c.provider.Now()
	for key, reading := range c.provider.Readings.Watched() {
		if !reading.At.IsZero() {
			out <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, max(now.Sub(reading.At).Seconds(), 0), key.Namespace, key.Name)
		}
	}
	if expires := c.certificate.Expires(); !expires.IsZero() {
		out <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, expires.Sub(now).Seconds())
	}
}
