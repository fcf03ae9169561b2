// Package operatormetrics makes the operator's own metrics. Each scrape reads the status of
// RelayPools from the cache, so no gauge outlives its RelayPool or lags behind its status.
// The outcomes of passes are counted as they happen.
package operatormetrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/relay/contract"
)

// readTimeout bounds a scrape. The cache answers at once, unless it is still being
// filled.
const readTimeout = 5 * time.Second

// Readings returns the last reading of the chain for a RelayPool. chainwatch.Watcher
// implements it. A process that is not the leader has no readings.
type Readings interface {
	Reading(pool types.NamespacedName) (chainwatch.Reading, bool)
}

// Options is what a Collector needs.
type Options struct {
	// Pools reads RelayPools from the operator's cache.
	Pools client.Reader
	// Readings has what a status omits: exact balances, and the times of readings.
	Readings Readings
}

// Collector is a prometheus.Collector of the status of RelayPools. Until the cache is
// filled, it sends no samples, because an unknown number must not appear as 0.
type Collector struct {
	options Options
	series  map[string]*prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// New makes a Collector. All options are required.
func New(o Options) (*Collector, error) {
	var missing []error
	for _, option := range []struct {
		name   string
		absent bool
	}{{"Pools", o.Pools == nil}, {"Readings", o.Readings == nil}} {
		if option.absent {
			missing = append(missing, fmt.Errorf("collector: option %s is not set", option.name))
		}
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	c := &Collector{options: o, series: map[string]*prometheus.Desc{}}
	for _, m := range []contract.Metric{
		contract.MetricOperatorPools, contract.MetricOperatorPoolCondition, contract.MetricOperatorPaused,
		contract.MetricOperatorChainChecked, contract.MetricOperatorChainUnavailableSince,
		contract.MetricOperatorPayerBalance, contract.MetricOperatorPayerBalanceTime,
		contract.MetricOperatorRotation, contract.MetricOperatorRotationStarted,
	} {
		c.series[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
	}
	return c, nil
}

// Describe sends the descriptions of all series.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.series {
		out <- d
	}
}

// Collect reads every RelayPool in the cache.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var pools v1alpha1.RelayPoolList
	if err := c.options.Pools.List(ctx, &pools); err != nil {
		return
	}
	s := scrape{Collector: c, out: out, count: map[[2]string]int{}}
	for i := range pools.Items {
		s.pool(&pools.Items[i])
	}
	s.totals()
}

// scrape is the state of one scrape.
type scrape struct {
	*Collector
	out   chan<- prometheus.Metric
	count map[[2]string]int // number of RelayPools, by condition and status
}

func (s *scrape) gauge(m contract.Metric, value float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(s.series[m.Name], prometheus.GaugeValue, value, labels...)
}

func (s *scrape) pool(p *v1alpha1.RelayPool) {
	s.conditions(p)
	if p.Spec.Paused {
		s.gauge(contract.MetricOperatorPaused, 1, p.Namespace, p.Name)
	}
	if r := p.Status.Rotation; r != nil && r.Step != v1alpha1.RotationDone {
		s.gauge(contract.MetricOperatorRotation, 1, p.Namespace, p.Name, string(r.Step))
		if r.Since != nil {
			s.gauge(contract.MetricOperatorRotationStarted, timestamp(r.Since.Time), p.Namespace, p.Name, string(r.Step))
		}
	}
	reading, ok := s.options.Readings.Reading(client.ObjectKeyFromObject(p))
	if !ok {
		return
	}
	if !reading.At.IsZero() {
		s.gauge(contract.MetricOperatorChainChecked, timestamp(reading.At), p.Namespace, p.Name)
	}
	if !reading.UnavailableSince.IsZero() {
		s.gauge(contract.MetricOperatorChainUnavailableSince, timestamp(reading.UnavailableSince), p.Namespace, p.Name)
	}
	s.payers(p, &reading)
}

// payers sends metrics for only those payers that the status lists. The length of that list is
// bounded, and the list has the state of each payer.
func (s *scrape) payers(p *v1alpha1.RelayPool, r *chainwatch.Reading) {
	for i := range p.Status.FeePayers {
		payer := &p.Status.FeePayers[i]
		address, err := solana.PublicKeyFromBase58(payer.Address)
		if err != nil {
			continue
		}
		balance, ok := r.Payers[address]
		if !ok {
			continue
		}
		labels := []string{p.Namespace, p.Name, payer.Address, stateLabel(payer.State)}
		s.gauge(contract.MetricOperatorPayerBalance, float64(balance.Lamports), labels...)
		s.gauge(contract.MetricOperatorPayerBalanceTime, timestamp(balance.At), labels...)
	}
}

// timestamp returns a time in the unit of metrics: seconds since 1970.
func timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
