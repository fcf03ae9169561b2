package externalmetrics

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsprovider "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/relay/contract"
)

// cache is a cluster's RelayPools, by namespace/name.
type cache struct {
	client.Reader
	pools []v1alpha1.RelayPool
	err   error
}

func (c cache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	for _, opt := range opts {
		opt.ApplyToList(&o)
	}
	for i := range c.pools {
		if c.pools[i].Namespace == o.Namespace {
			into := list.(*v1alpha1.RelayPoolList)
			into.Items = append(into.Items, c.pools[i])
		}
	}
	return c.err
}

func scaled(namespace, name string) v1alpha1.RelayPool {
	return v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.RelayPoolSpec{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: 2}}}
}

type readings map[string]pool.Reading

func (r readings) Reading(key types.NamespacedName) (pool.Reading, bool) {
	reading, ok := r[key.String()]
	return reading, ok
}

func (r readings) Watched() map[types.NamespacedName]pool.Reading { return nil }

func TestValues(t *testing.T) {
	t.Parallel()
	now := time.Now()
	read := func(due int64, age time.Duration) pool.Reading {
		return pool.Reading{Ready: 1, Backlog: pool.Backlog{At: now.Add(-age), Due: due, Oldest: 7 * time.Second, Held: map[string]int64{"fee_payer_empty": 900}}}
	}
	refusedBy := &url.Error{Op: "Get", URL: "http://10.1.2.3:9090/backlog", Err: &pool.StatusError{Status: http.StatusNotFound}}
	fixed, keda := scaled("a", "fixed"), scaled("a", "keda")
	fixed.Spec.Autoscaling, keda.Spec.Autoscaling.Provider = nil, v1alpha1.ProviderKEDA
	all := cache{pools: []v1alpha1.RelayPool{scaled("a", "one"), scaled("a", "two"), scaled("b", "one"), fixed, keda}}
	good := readings{"a/one": read(5, time.Second), "a/two": read(6, 29*time.Second), "b/one": read(7, 0)}
	with := func(key string, r pool.Reading) readings {
		out := readings{}
		for k, v := range good {
			out[k] = v
		}
		out[key] = r
		return out
	}
	silent := read(5, 31*time.Second)
	silent.Err = refusedBy
	withoutDatabase := read(5, 31*time.Second)
	withoutDatabase.Err = fmt.Errorf("ask for the backlog: %w", &pool.StatusError{Status: http.StatusServiceUnavailable})
	ending := scaled("a", "ending")
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: now}, []string{"x/y"}
	all.pools = append(all.pools, ending)
	tests := map[string]struct {
		cache      cache
		readings   readings
		namespaces []string
		namespace  string
		metric     string
		selector   string
		want       map[string]int64
		wantCode   int32
		says       string
		outcome    outcome
	}{
		"one RelayPool":                 {cache: all, readings: good, namespace: "a", selector: "namespace=a,pool=one", want: map[string]int64{"a/one": 5}, outcome: outcomeServed},
		"the age of its backlog":        {cache: all, readings: good, namespace: "a", metric: contract.MetricBacklogAge.Name, selector: "pool=one", want: map[string]int64{"a/one": 7}, outcome: outcomeServed},
		"several RelayPools":            {cache: all, readings: good, namespace: "a", selector: "pool in (one, two)", want: map[string]int64{"a/one": 5, "a/two": 6}, outcome: outcomeServed},
		"all scaled RelayPools":         {cache: all, readings: good, namespace: "a", want: map[string]int64{"a/one": 5, "a/two": 6}, outcome: outcomeServed},
		"no work":                       {cache: all, readings: with("a/one", read(0, 0)), namespace: "a", selector: "pool=one", want: map[string]int64{"a/one": 0}, outcome: outcomeServed},
		"half a minute old":             {cache: all, readings: with("a/one", read(5, 30*time.Second)), namespace: "a", selector: "pool=one", want: map[string]int64{"a/one": 5}, outcome: outcomeServed},
		"a reading too old":             {cache: all, readings: with("a/one", read(5, 31*time.Second)), namespace: "a", selector: "pool=one", wantCode: 503, says: "the backlog of RelayPool a/one is not known: the last reading is older than 30s", outcome: outcomeStale},
		"too old, pods do not answer":   {cache: all, readings: with("a/one", silent), namespace: "a", selector: "pool=one", wantCode: 503, says: "its pods do not answer on port 9090 (expected status 200, received 404), and the last reading is older than 30s", outcome: outcomeStale},
		"too old, no database":          {cache: all, readings: with("a/one", withoutDatabase), namespace: "a", selector: "pool=one", wantCode: 503, says: "its pods answer that their database is away (status 503), and the last reading is older than 30s", outcome: outcomeStale},
		"being deleted":                 {cache: all, readings: good, namespace: "a", selector: "pool=ending", wantCode: 404, says: "RelayPool a/ending is being deleted", outcome: outcomeUnknown},
		"one of two is old":             {cache: all, readings: with("a/two", read(5, time.Minute)), namespace: "a", wantCode: 503, says: "a/two", outcome: outcomeStale},
		"never read":                    {cache: all, readings: with("a/one", pool.Reading{Ready: 2}), namespace: "a", selector: "pool=one", wantCode: 503, says: "it has never been read", outcome: outcomeStale},
		"not known yet":                 {cache: all, readings: readings{}, namespace: "a", selector: "pool=one", wantCode: 503, says: "its pods have not been asked yet", outcome: outcomeStale},
		"no pod is ready":               {cache: all, readings: with("a/one", pool.Reading{Backlog: read(5, 0).Backlog}), namespace: "a", selector: "pool=one", wantCode: 503, says: "none of its pods is ready", outcome: outcomeNotReady},
		"another namespace's":           {cache: all, readings: good, namespace: "a", selector: "namespace=b,pool=one", wantCode: 403, says: `asks for RelayPools of the namespace "b" in a request for "a"`, outcome: outcomeRefused},
		"another namespace's, by a set": {cache: all, readings: good, namespace: "a", selector: "namespace in (b, c),pool=one", wantCode: 404, says: "no RelayPool", outcome: outcomeUnknown},
		"a name that does not exist":    {cache: all, readings: good, namespace: "a", selector: "namespace=a,pool=none", wantCode: 404, says: "expected namespace=a,pool=NAME", outcome: outcomeUnknown},
		"a fixed size":                  {cache: all, readings: good, namespace: "a", selector: "pool=fixed", wantCode: 404, says: "a/fixed has no spec.autoscaling with the provider HPA", outcome: outcomeUnknown},
		"scaled by KEDA":                {cache: all, readings: good, namespace: "a", selector: "pool=keda", wantCode: 404, says: "a/keda has no spec.autoscaling with the provider HPA", outcome: outcomeUnknown},
		"a namespace not managed":       {cache: all, readings: good, namespaces: []string{"b"}, namespace: "a", selector: "pool=one", wantCode: 404, says: "add it to RELAYPOOL_NAMESPACES", outcome: outcomeUnknown},
		"a managed namespace":           {cache: all, readings: good, namespaces: []string{"a"}, namespace: "a", selector: "pool=one", want: map[string]int64{"a/one": 5}, outcome: outcomeServed},
		"another metric":                {cache: all, readings: good, namespace: "a", metric: "cpu", wantCode: 404, says: "there is no such external metric: expected relaypool_backlog_submissions or", outcome: outcomeUnknown},
		"a cache not yet synchronised":  {cache: cache{err: errors.New("not synced")}, readings: good, namespace: "a", wantCode: 503, says: "RelayPools cannot be read", outcome: outcomeFailed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := NewProvider(ProviderOptions{Pools: tt.cache, Readings: tt.readings, Namespaces: tt.namespaces, Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			selector, err := labels.Parse(tt.selector)
			if err != nil {
				t.Fatal(err)
			}
			metric := stdcmp.Or(tt.metric, contract.MetricBacklog.Name)
			counted := metric
			if valueFuncs()[metric] == nil {
				counted = "other"
			}
			list, err := p.GetExternalMetric(t.Context(), tt.namespace, selector, metricsprovider.ExternalMetricInfo{Metric: metric})
			if got := testutil.ToFloat64(p.outcomes.WithLabelValues(counted, string(tt.outcome))); got != 1 {
				t.Errorf("%s was counted %v times: want once", tt.outcome, got)
			}
			if tt.wantCode != 0 {
				var status apierrors.APIStatus
				if !errors.As(err, &status) || status.Status().Code != tt.wantCode || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "10.1.2.3") {
					t.Errorf("error is %v, want %d that says %q", err, tt.wantCode, tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			for _, v := range list.Items {
				key := v.MetricLabels[build.LabelMetricNamespace] + "/" + v.MetricLabels[build.LabelMetricPool]
				got[key] = v.Value.Value()
				if v.MetricName != metric || !v.Timestamp.Time.Equal(tt.readings[key].At) {
					t.Errorf("%+v: want %s of %s", v, metric, tt.readings[key].At)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// The list has every metric that is served, and no other.
func TestListedMetricsAreServed(t *testing.T) {
	t.Parallel()
	p, err := NewProvider(ProviderOptions{Pools: cache{}, Readings: readings{}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range p.ListAllExternalMetrics() {
		if valueFuncs()[m.Metric] == nil {
			t.Errorf("%s is listed but not served", m.Metric)
		}
	}
	if len(p.ListAllExternalMetrics()) != len(valueFuncs()) {
		t.Error("a served metric is not listed")
	}
}

func TestOptionsAreRequired(t *testing.T) {
	t.Parallel()
	if _, err := NewProvider(ProviderOptions{}); err == nil {
		t.Error("NewProvider accepts empty options")
	}
	if _, err := NewServer(ServerOptions{}); err == nil || strings.Count(err.Error(), "is not set") != 6 {
		t.Errorf("error is %v, want one for each option", err)
	}
}
