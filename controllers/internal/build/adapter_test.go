package build_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

// adapterRule is a rule of the Prometheus adapter, in the form of its configuration.
type adapterRule struct {
	SeriesQuery string `json:"seriesQuery"`
	Resources   struct {
		Overrides map[string]struct {
			Resource string `json:"resource"`
		} `json:"overrides"`
	} `json:"resources"`
	Name struct {
		Matches string `json:"matches"`
		As      string `json:"as"`
	} `json:"name"`
	MetricsQuery string `json:"metricsQuery"`
}

func adapterRules(t *testing.T) []adapterRule {
	t.Helper()
	content, err := os.ReadFile("../../../docs/guides/prometheus-adapter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		ExternalRules []adapterRule `json:"externalRules"`
	}
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		t.Fatal(err)
	}
	return config.ExternalRules
}

// query renders a rule's query as the adapter does: a Go template with the adapter's
// delimiters. Its matchers are the selector's labels, and then the request's namespace
// under the label that the override names.
func (r adapterRule) query(t *testing.T, series, namespace string, selector map[string]string) string {
	t.Helper()
	var matchers []string
	for _, label := range slices.Sorted(maps.Keys(selector)) {
		matchers = append(matchers, label+`="`+selector[label]+`"`)
	}
	for label, o := range r.Resources.Overrides {
		if o.Resource == "namespace" {
			matchers = append(matchers, label+`="`+namespace+`"`)
		}
	}
	parsed, err := texttemplate.New("query").Delims("<<", ">>").Option("missingkey=error").Parse(r.MetricsQuery)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	// GroupBy is empty for external metrics: a rule that used it would sum over fleets.
	if err := parsed.Execute(&out, map[string]string{"Series": series, "LabelMatchers": strings.Join(matchers, ",")}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The adapter's rules serve the metrics that an autoscaler requests, from series that
// relays have.
func TestPrometheusAdapterServesTheHPAsMetrics(t *testing.T) {
	t.Parallel()
	known := map[string]contract.Metric{}
	for _, m := range contract.Metrics() {
		known[m.Name] = m
	}
	in := input(load(t, "minimal"), 2)
	in.Pool.Spec.Replicas, in.Pool.Spec.Autoscaling = nil, &v1alpha1.Autoscaling{MaxReplicas: 4, OldestAgeSeconds: 30}
	hpa := into[autoscalingv2.HorizontalPodAutoscaler](t, single(t, build.Objects(in), build.KindHorizontalPodAutoscaler.Kind))
	rules := adapterRules(t)
	if len(rules) != len(hpa.Spec.Metrics) {
		t.Errorf("%d rules for %d metrics, want one for each metric", len(rules), len(hpa.Spec.Metrics))
	}
	series := regexp.MustCompile(`^(\w+)\{namespace!="",pool!=""\}$`)
	for _, m := range hpa.Spec.Metrics {
		found := false
		for _, r := range rules {
			match := series.FindStringSubmatch(r.SeriesQuery)
			if match == nil {
				t.Fatalf("%s finds no series by namespace and pool", r.SeriesQuery)
			}
			if _, ok := known[match[1]]; !ok {
				t.Errorf("%s is no metric of the relay", match[1])
			}
			if regexp.MustCompile(r.Name.Matches).ReplaceAllString(match[1], r.Name.As) != m.External.Metric.Name {
				continue
			}
			found = true
			ns, name := in.Pool.Namespace, in.Pool.Name
			want := "max by (namespace, pool) (" + m.External.Metric.Name + `{namespace="` + ns + `",pool="` + name + `",namespace="` + ns + `"})`
			if diff := cmp.Diff(want, r.query(t, match[1], ns, m.External.Metric.Selector.MatchLabels)); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		}
		if !found {
			t.Errorf("no rule serves %s", m.External.Metric.Name)
		}
	}
}
