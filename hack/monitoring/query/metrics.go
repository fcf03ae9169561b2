// Package query holds PromQL against the metrics that there are: a query that
// asks for a metric or a label that nobody exposes shows nothing, and nobody
// notices.
package query

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/relaypool/relaypool/relay/contract"
)

// Kind is a metric's type.
type Kind string

// The types that there are.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Source is who exposes a metric.
type Source string

// The sources.
const (
	// Relay is scraped by a PodMonitor, Operator by a ServiceMonitor.
	Relay    Source = "relay"
	Operator Source = "operator"
	// Process is what client_golang exposes of each of the two.
	Process Source = "process"
	// KubeState is kube-state-metrics, which most clusters have beside Prometheus.
	KubeState Source = "kube-state-metrics"
	// Scrape is what Prometheus itself adds to each target.
	Scrape Source = "scrape"
)

// Metric is what a query may ask for.
type Metric struct {
	Name   string
	Kind   Kind
	Source Source
	// Labels are its own; those of the target come with every metric.
	Labels []string
}

// Targets are the labels that a scrape adds to each sample: namespace, pod and
// those of the pod by Prometheus' service discovery, pool by the PodMonitor.
func Targets() []string {
	return []string{"namespace", "pool", "pod", "container", "instance", "job"}
}

// Catalogue is all metrics by name.
type Catalogue map[string]Metric

// others are the metrics that are not the project's own.
func others() []Metric {
	hpa := []string{"horizontalpodautoscaler"}
	return []Metric{
		{"up", Gauge, Scrape, nil},
		{"kube_deployment_spec_replicas", Gauge, KubeState, []string{"deployment"}},
		{"kube_deployment_status_replicas_ready", Gauge, KubeState, []string{"deployment"}},
		{"kube_horizontalpodautoscaler_status_desired_replicas", Gauge, KubeState, hpa},
		{"kube_horizontalpodautoscaler_status_current_replicas", Gauge, KubeState, hpa},
		{"kube_horizontalpodautoscaler_spec_max_replicas", Gauge, KubeState, hpa},
		{"go_goroutines", Gauge, Process, nil},
		{"go_gc_duration_seconds_sum", Counter, Process, nil},
		{"process_cpu_seconds_total", Counter, Process, nil},
		{"process_resident_memory_bytes", Gauge, Process, nil},
		{"process_open_fds", Gauge, Process, nil},
	}
}

// rows of the generated lists of metrics: name and type.
var row = regexp.MustCompile("(?m)^- `([a-z_]+)` \\(([a-z]+)")

// Load gathers all metrics: names and labels from relay/contract, types from the
// lists that are generated from what relay and operator really register.
func Load(root string) (Catalogue, error) {
	all := Catalogue{}
	for _, m := range others() {
		all[m.Name] = m
	}
	for _, s := range []struct {
		table   string
		source  Source
		metrics []contract.Metric
	}{
		{"docs/reference/metrics.md", Relay, contract.Metrics()},
		{"docs/reference/operator-metrics.md", Operator, contract.OperatorMetrics()},
	} {
		content, err := os.ReadFile(filepath.Join(root, s.table))
		if err != nil {
			return nil, fmt.Errorf("read the types of metrics: %w", err)
		}
		kinds := map[string]Kind{}
		for _, m := range row.FindAllSubmatch(bytes.ReplaceAll(content, []byte("\r"), nil), -1) {
			kinds[string(m[1])] = Kind(m[2])
		}
		for _, m := range s.metrics {
			kind := kinds[m.Name]
			if !slices.Contains([]Kind{Counter, Gauge, Histogram}, kind) {
				return nil, fmt.Errorf("%s has no type for %s, expected counter, gauge or histogram: generate it", s.table, m.Name)
			}
			all[m.Name] = Metric{m.Name, kind, s.source, m.Labels}
		}
	}
	return all, nil
}
