package monitoring_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/relaypool/relaypool/relay/contract"
)

// root is the checkout.
const root = "../.."

// kind is a metric's type.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// source is the program that exposes a metric.
type source string

const (
	// A PodMonitor scrapes the metrics ofRelay, and a ServiceMonitor scrapes those ofOperator.
	ofRelay    source = "relay"
	ofOperator source = "operator"
	// ofProcess are the metrics of client_golang, which relay and operator expose.
	ofProcess source = "process"
	// ofCluster are the metrics of kube-state-metrics, which most clusters with Prometheus have.
	ofCluster source = "kube-state-metrics"
	// ofScrape are the metrics that Prometheus itself adds to each target.
	ofScrape source = "scrape"
)

// metric is a metric that queries may use.
type metric struct {
	name   string
	kind   kind
	source source
	// labels are the metric's own labels; targetLabels come in addition.
	labels []string
}

// targetLabels are the labels that a scrape adds to each sample: namespace, pod and
// the pod's labels by Prometheus' service discovery, pool by the PodMonitor.
func targetLabels() []string {
	return []string{"namespace", "pool", "pod", "container", "instance", "job"}
}

// catalogue is all metrics by name.
type catalogue map[string]metric

// externalMetrics are the metrics of other programs.
func externalMetrics() []metric {
	hpa := []string{"horizontalpodautoscaler"}
	return []metric{
		{"up", gauge, ofScrape, nil},
		{"kube_deployment_spec_replicas", gauge, ofCluster, []string{"deployment"}},
		{"kube_deployment_status_replicas_ready", gauge, ofCluster, []string{"deployment"}},
		{"kube_horizontalpodautoscaler_status_desired_replicas", gauge, ofCluster, hpa},
		{"kube_horizontalpodautoscaler_status_current_replicas", gauge, ofCluster, hpa},
		{"kube_horizontalpodautoscaler_spec_max_replicas", gauge, ofCluster, hpa},
		{"go_goroutines", gauge, ofProcess, nil},
		{"go_gc_duration_seconds_sum", counter, ofProcess, nil},
		{"process_cpu_seconds_total", counter, ofProcess, nil},
		{"process_resident_memory_bytes", gauge, ofProcess, nil},
		{"process_open_fds", gauge, ofProcess, nil},
	}
}

// metricRow is a line of the generated lists of metrics: name and type.
var metricRow = regexp.MustCompile("(?m)^- `([a-z_]+)` \\(([a-z]+)")

// loadMetrics gathers all metrics: names and labels from relay/contract, types from
// the lists that are generated from what relay and operator really register.
func loadMetrics(t *testing.T) catalogue {
	t.Helper()
	all := catalogue{}
	for _, m := range externalMetrics() {
		all[m.name] = m
	}
	for _, s := range []struct {
		list    string
		source  source
		metrics []contract.Metric
	}{
		{"docs/reference/metrics.md", ofRelay, contract.Metrics()},
		{"docs/reference/operator-metrics.md", ofOperator, contract.OperatorMetrics()},
	} {
		content, err := os.ReadFile(filepath.Join(root, s.list))
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]kind{}
		for _, m := range metricRow.FindAllSubmatch(content, -1) {
			kinds[string(m[1])] = kind(m[2])
		}
		for _, m := range s.metrics {
			if !slices.Contains([]kind{counter, gauge, histogram}, kinds[m.Name]) {
				t.Fatalf("%s has the type %q for %s, expected counter, gauge or histogram: generate the list again", s.list, kinds[m.Name], m.Name)
			}
			all[m.Name] = metric{m.Name, kinds[m.Name], s.source, m.Labels}
		}
	}
	return all
}
