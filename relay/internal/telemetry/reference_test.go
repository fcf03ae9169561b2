package telemetry

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

//go:generate go test -run ^TestEveryMetricIsDocumented$ . -update

var update = flag.Bool("update", false, "rewrite docs/reference/metrics.md")

const referencePath = "../../../docs/reference/metrics.md"

// metricsWithAllSamples returns metrics with a sample of each metric in the contract. It
// registers a function for each metric that no method sets.
func metricsWithAllSamples(t *testing.T) *Metrics {
	t.Helper()
	m := NewMetrics(Build{Version: "1.2.3", Revision: "abc"})
	m.Request("GET", contract.HealthPath, 200, time.Millisecond)
	m.ClientRequest("wallet", 200)
	m.SignerCalled("vault", "signed", time.Millisecond)
	m.Stage("verify", time.Millisecond)
	m.Outcome(shieldpool.KindTransfer, "completed")
	m.Outcome(shieldpool.KindTransfer, "finalized")
	m.Attempt("signed")
	m.LandedAfter("", 3, 5000)
	m.LaneExpired("")
	m.Lease("claimed", 1)
	m.Poll(1, true)
	m.RPCCalled("a", "getSlot", "ok", time.Millisecond)
	m.BreakerStateChanged("a", "open")
	m.RebroadcastSkipped("a")
	m.EndpointContradicted("a")
	m.NotificationReceived("a")
	m.Outcome("swap_execution", "executed")
	m.SwapDeferred("price")
	m.RouterCalled("preferred", "quote", "ok", time.Millisecond)
	m.RouteRejected("program")
	m.MaintenanceRan("retention", time.Millisecond, nil)
	m.RowsDeleted("submissions", 1)
	m.LedgerEntryAdded("transfer")
	m.TreeObserved(1, nil)
	gathered := gatherFamilies(t, m)
	for _, c := range contract.Metrics() {
		if gathered[c.Name] == nil {
			m.RegisterVecFunc(c, func(sample Sample) { sample(1, c.Labels...) })
		}
	}
	return m
}

func gatherFamilies(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	gathered, err := m.Registry.Gather()
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
	named := map[string]contract.Metric{}
	for _, c := range contract.Metrics() {
		named[c.Name] = c
	}
	for name, f := range gatherFamilies(t, metricsWithAllSamples(t)) {
		c, ok := named[name]
		if !ok {
			if strings.HasPrefix(name, "relaypool_") {
				t.Errorf("%s is registered, but relay/contract does not name it", name)
			}
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(c.Labels)), labels); diff != "" {
			t.Errorf("labels of %s (-contract +registered):\n%s", name, diff)
		}
	}
}

func TestEveryMetricHasAHelpSentence(t *testing.T) {
	t.Parallel()
	for _, c := range contract.Metrics() {
		if !strings.HasSuffix(c.Help, ".") || strings.Contains(c.Help, "|") {
			t.Errorf("%s: help %q, want a sentence that ends with a full stop and has no |", c.Name, c.Help)
		}
	}
}

func TestMetricsFollowPrometheusConventions(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(metricsWithAllSamples(t).Registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	want := writeReference(gatherFamilies(t, metricsWithAllSamples(t)))
	if *update {
		if err := os.MkdirAll(filepath.Dir(referencePath), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(referencePath, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/reference/metrics.md is not current, run go generate ./relay/internal/telemetry (-want +got):\n%s", diff)
	}
}

const introduction = `# Metrics

<!-- Generated from relay/contract by go generate ./relay/internal/telemetry. Do not edit. -->

A relay serves these metrics at ` + "`/metrics`" + ` of its operations port, with those of Go and the process. Labels are from
fixed sets and contain nothing of a request. Unknown values have no sample. Figures of the fleet are the same on every
pod: use ` + "`max by (namespace, pool)`" + `. [Alerts](alerts.md) say what to do. In brackets: type and labels.

`

// writeReference writes the contract's metrics as Markdown, in its order.
func writeReference(registered map[string]*dto.MetricFamily) []byte {
	var b bytes.Buffer
	b.WriteString(introduction)
	for _, c := range contract.Metrics() {
		kind := strings.ToLower(registered[c.Name].GetType().String())
		if len(c.Labels) > 0 {
			kind += " " + strings.Join(c.Labels, ", ")
		}
		sentence, _, _ := strings.Cut(c.Help, ". ") // the metric's help has the rest
		fmt.Fprintf(&b, "- `%s` (%s): %s.\n", c.Name, kind, strings.TrimSuffix(sentence, "."))
	}
	return b.Bytes()
}
