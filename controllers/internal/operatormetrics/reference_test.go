package operatormetrics_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	metricsprovider "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/externalmetrics"
	"github.com/relaypool/relaypool/controllers/internal/operatormetrics"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/relay/contract"
)

//go:generate go test -run ^TestEveryMetricIsDocumented$ . -update

var update = flag.Bool("update", false, "write docs/reference/operator-metrics.md anew")

const reference = "../../../docs/reference/operator-metrics.md"

// fullRegistry returns a registry with at least one sample of each metric.
func fullRegistry(t *testing.T) *prometheus.Registry {
	t.Helper()
	passes, err := operatormetrics.NewCountingApplier(&fakeApplier{result: apply.Result{Applied: []apply.Ref{{Kind: build.KindService, Name: "demo"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := passes.Apply(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	provider, err := externalmetrics.NewProvider(externalmetrics.ProviderOptions{Pools: fake.NewClientBuilder().Build(), Readings: watched{}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.GetExternalMetric(t.Context(), "n", labels.Everything(), metricsprovider.ExternalMetricInfo{Metric: "another"}); err == nil {
		t.Fatal("there is another metric")
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(t, knownReadings(), pools()...), passes, externalmetrics.NewCollector(provider, watched{}))
	return registry
}

// watched is a watched fleet whose backlog was read, and a certificate that is valid for a
// day.
type watched struct{}

func (watched) Reading(types.NamespacedName) (pool.Reading, bool) { return pool.Reading{}, false }

func (watched) Watched() map[types.NamespacedName]pool.Reading {
	return map[types.NamespacedName]pool.Reading{{Namespace: "n", Name: "demo"}: {Backlog: pool.Backlog{At: time.Now()}}}
}

func (watched) Expires() time.Time { return time.Now().Add(24 * time.Hour) }

func families(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	gathered, err := fullRegistry(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, f := range gathered {
		out[f.GetName()] = f
	}
	return out
}

func TestEveryMetricIsNamedInTheContract(t *testing.T) {
	t.Parallel()
	registered := families(t)
	for _, c := range contract.OperatorMetrics() {
		f := registered[c.Name]
		if f == nil {
			t.Errorf("%s is in the contract, but has no sample", c.Name)
			continue
		}
		delete(registered, c.Name)
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(c.Labels)), labels); diff != "" {
			t.Errorf("labels of %s (-contract +registered):\n%s", c.Name, diff)
		}
		if !strings.HasSuffix(c.Help, ".") || strings.Contains(c.Help, "|") {
			t.Errorf("%s: its help is no sentence that fits a table: %q", c.Name, c.Help)
		}
	}
	for name := range registered {
		t.Errorf("%s is registered, but relay/contract does not name it", name)
	}
}

func TestMetricsFollowPrometheusConventions(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(fullRegistry(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	want := writeReference(families(t))
	if *update {
		if err := os.WriteFile(reference, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/reference/operator-metrics.md is not current, run go generate ./controllers/internal/operatormetrics (-want +got):\n%s", diff)
	}
}

const introduction = `# Metrics of the operator

<!-- Generated from relay/contract by go generate ./controllers/internal/operatormetrics. Do not edit. -->

The operator serves these at ` + "`/metrics`" + `, beside those of controller-runtime, Go and the process. Only the leader has
balances and ages: take ` + "`max by (namespace, pool)`" + `. What is not known has no sample. Messages and Secrets are never labels.

`

// writeReference writes the operator's metrics as Markdown, in the contract's
// order.
func writeReference(registered map[string]*dto.MetricFamily) []byte {
	var b bytes.Buffer
	b.WriteString(introduction)
	for _, c := range contract.OperatorMetrics() {
		kind := strings.ToLower(registered[c.Name].GetType().String())
		if len(c.Labels) > 0 {
			kind += " " + strings.Join(c.Labels, ", ")
		}
		sentence, _, _ := strings.Cut(c.Help, ". ") // the rest is in the metric's own help
		fmt.Fprintf(&b, "- `%s` (%s): %s.\n", c.Name, kind, strings.TrimSuffix(sentence, "."))
	}
	return b.Bytes()
}
