package operatormetrics

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

// Applier applies the objects of RelayPools. apply.Applier implements it.
type Applier interface {
	Apply(ctx context.Context, owner *v1alpha1.RelayPool, objects []build.Object, opts ...apply.Option) (apply.Result, error)
	Forget(pool types.NamespacedName)
}

// CountingApplier is an Applier that counts the outcomes of an inner Applier. It is also the
// prometheus.Collector of these counts.
type CountingApplier struct {
	Applier
	passes, objects *prometheus.CounterVec
}

var _ prometheus.Collector = (*CountingApplier)(nil)

// NewCountingApplier makes a CountingApplier that counts the outcomes of inner. It returns an
// error if inner is nil.
func NewCountingApplier(inner Applier) (*CountingApplier, error) {
	if inner == nil {
		return nil, errors.New("collector: there is no applier to count")
	}
	p := &CountingApplier{
		Applier: inner,
		passes:  counters(contract.MetricOperatorPasses),
		objects: counters(contract.MetricOperatorObjects),
	}
	// Prometheus sees no increase in a counter that appears at 1, so every outcome starts
	// at 0.
	for _, outcome := range []string{outcomeSteady, outcomeChanged, outcomeHeld, outcomeConflict, outcomeFailed} {
		p.passes.WithLabelValues(outcome)
	}
	return p, nil
}

func counters(m contract.Metric) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// Describe sends the descriptions of the counters.
func (p *CountingApplier) Describe(out chan<- *prometheus.Desc) {
	p.passes.Describe(out)
	p.objects.Describe(out)
}

// Collect sends the counters.
func (p *CountingApplier) Collect(out chan<- prometheus.Metric) {
	p.passes.Collect(out)
	p.objects.Collect(out)
}

// Apply calls the inner Applier, and counts its outcome.
func (p *CountingApplier) Apply(ctx context.Context, owner *v1alpha1.RelayPool, objects []build.Object, opts ...apply.Option) (apply.Result, error) {
	result, err := p.Applier.Apply(ctx, owner, objects, opts...)
	p.passes.WithLabelValues(outcomeOf(&result, err)).Inc()
	for event, refs := range map[string][]apply.Ref{
		"applied": result.Applied, "repaired": result.Repaired, "pruned": result.Pruned,
		"foreign": result.Foreign, "contested": result.Contested,
	} {
		for _, ref := range refs {
			p.objects.WithLabelValues(ref.Kind.Kind, event).Inc()
		}
	}
	for i := range result.Refused {
		p.objects.WithLabelValues(result.Refused[i].Kind.Kind, "refused").Inc()
	}
	return result, err
}
