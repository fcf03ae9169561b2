// Package externalmetrics serves the backlog of fleets as Kubernetes' external
// metrics, which HorizontalPodAutoscalers read through the API server. The API server
// authenticates and authorises the requests.
//
// For an unknown value the server returns an error. An autoscaler that gets an error does not
// change the fleet's size. An autoscaler that got 0, or a sum without that value, could remove
// pods.
package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsprovider "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/relay/contract"
)

// Readings has the readings of backlogs. pool.Poller implements it.
type Readings interface {
	// Reading returns what is known about the backlog of a RelayPool, and false when the
	// backlog is not watched.
	Reading(key types.NamespacedName) (pool.Reading, bool)
	// Watched returns the readings of all watched RelayPools.
	Watched() map[types.NamespacedName]pool.Reading
}

// ProviderOptions is what a Provider needs.
type ProviderOptions struct {
	// Pools reads RelayPools from the cache.
	Pools client.Reader
	// Readings has the readings of the RelayPools' backlogs.
	Readings Readings
	// Namespaces are the namespaces in the cache; empty means all.
	Namespaces []string
	// Now is the clock.
	Now func() time.Time
}

// Provider returns the metrics' values. It is safe for concurrent use.
type Provider struct {
	ProviderOptions
	outcomes *outcomes
}

var _ metricsprovider.ExternalMetricsProvider = (*Provider)(nil)

// NewProvider makes a Provider. All options but Namespaces are required.
func NewProvider(o ProviderOptions) (*Provider, error) {
	if o.Pools == nil || o.Readings == nil || o.Now == nil {
		return nil, errors.New("make provider of external metrics: Pools, Readings and Now are required")
	}
	return &Provider{ProviderOptions: o, outcomes: newOutcomes()}, nil
}

// valueFunc returns a metric's value from a backlog.
type valueFunc func(pool.Backlog) resource.Quantity

// valueFuncs returns the valueFunc of each metric, by the metric's name.
func valueFuncs() map[string]valueFunc {
	return map[string]valueFunc{
		contract.MetricBacklog.Name: func(b pool.Backlog) resource.Quantity { return *resource.NewQuantity(b.Due, resource.DecimalSI) },
		contract.MetricBacklogAge.Name: func(b pool.Backlog) resource.Quantity {
			return *resource.NewQuantity(int64(b.Oldest/time.Second), resource.DecimalSI)
		},
	}
}

// ListAllExternalMetrics implements ExternalMetricsProvider.
func (*Provider) ListAllExternalMetrics() []metricsprovider.ExternalMetricInfo {
	return []metricsprovider.ExternalMetricInfo{{Metric: contract.MetricBacklog.Name}, {Metric: contract.MetricBacklogAge.Name}}
}

// GetExternalMetric implements ExternalMetricsProvider. The selector selects RelayPools of the
// namespace by the labels namespace and pool. GetExternalMetric returns one value for each
// selected RelayPool. It returns an error if none is selected.
func (p *Provider) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info metricsprovider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	values, outcome, err := p.values(ctx, namespace, selector, info.Metric)
	p.outcomes.count(info.Metric, outcome)
	if err != nil {
		return nil, err
	}
	return &external_metrics.ExternalMetricValueList{Items: values}, nil
}

func (p *Provider) values(ctx context.Context, namespace string, selector labels.Selector, metric string) ([]external_metrics.ExternalMetricValue, outcome, error) {
	valueOf := valueFuncs()[metric]
	if valueOf == nil {
		return nil, outcomeUnknown, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			"there is no such external metric: expected %s or %s", contract.MetricBacklog.Name, contract.MetricBacklogAge.Name)
	}
	if selected, ok := selector.RequiresExactMatch(build.LabelMetricNamespace); ok && selected != namespace {
		return nil, outcomeRefused, failure(http.StatusForbidden, metav1.StatusReasonForbidden,
			"the selector asks for RelayPools of the namespace %q in a request for %q: both have to be the same", selected, namespace)
	}
	pools, outcome, err := p.selectPools(ctx, namespace, selector)
	if err != nil {
		return nil, outcome, err
	}
	var out []external_metrics.ExternalMetricValue
	for _, key := range pools {
		reading, outcome, err := p.read(key)
		if err != nil {
			return nil, outcome, err
		}
		out = append(out, external_metrics.ExternalMetricValue{
			MetricName: metric, MetricLabels: metricLabels(key), Timestamp: metav1.NewTime(reading.At), Value: valueOf(reading),
		})
	}
	return out, outcomeServed, nil
}

// metricLabels returns the labels of a RelayPool's metrics.
func metricLabels(key types.NamespacedName) labels.Set {
	return labels.Set{build.LabelMetricNamespace: key.Namespace, build.LabelMetricPool: key.Name}
}

// selectPools returns the RelayPools in the namespace that match the selector and are scaled by a
// HorizontalPodAutoscaler. If there are no such RelayPools, it returns an error.
func (p *Provider) selectPools(ctx context.Context, namespace string, selector labels.Selector) ([]types.NamespacedName, outcome, error) {
	if len(p.Namespaces) > 0 && !slices.Contains(p.Namespaces, namespace) {
		return nil, outcomeUnknown, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			"the operator that serves this metric manages only some namespaces, and %q is not one of them: add it to %s", namespace, contract.OperatorEnvNamespaces)
	}
	var pools v1alpha1.RelayPoolList
	if err := p.Pools.List(ctx, &pools, client.InNamespace(namespace)); err != nil {
		return nil, outcomeFailed, failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "RelayPools cannot be read: %v", err)
	}
	var found, unscaled, ending []types.NamespacedName
	for i := range pools.Items {
		key := client.ObjectKeyFromObject(&pools.Items[i])
		switch {
		case !selector.Matches(metricLabels(key)):
		case pools.Items[i].DeletionTimestamp != nil:
			ending = append(ending, key)
		case !pool.ScaledByMetric(&pools.Items[i]):
			unscaled = append(unscaled, key)
		default:
			found = append(found, key)
		}
	}
	switch {
	case len(found) > 0:
		return found, outcomeServed, nil
	case len(ending) > 0:
		return nil, outcomeUnknown, failure(http.StatusNotFound, metav1.StatusReasonNotFound, "RelayPool %s is being deleted: its backlog is not served", ending[0])
	case len(unscaled) > 0:
		return nil, outcomeUnknown, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			"RelayPool %s has no spec.autoscaling with the provider HPA: its backlog is not served", unscaled[0])
	default:
		return nil, outcomeUnknown, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			"no RelayPool in the namespace %q has the labels %s: expected namespace=%s,pool=NAME", namespace, selector, namespace)
	}
}

// publicError returns the text of an error without the address of the polled pod, which differs
// from poll to poll.
func publicError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within two seconds"
	}
	var opError *net.OpError
	if errors.As(err, &opError) && opError.Err != nil {
		return opError.Err.Error()
	}
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return urlError.Err.Error()
	}
	return err.Error()
}

func unavailable(key types.NamespacedName, why string) error {
	return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the backlog of RelayPool %s is not known: %s", key, why)
}

func failure(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}
