package build

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// These labels distinguish the fleet's metrics from another fleet's: Prometheus adds the
// namespace, and the PodMonitor adds the pool.
const (
	labelNamespace = "namespace"
	labelPool      = "pool"
)

const defaultScrapeSeconds = 15

// monitoring returns the objects for the Prometheus operator, of the kinds that the cluster
// has.
func monitoring(in Input) []Object {
	var objects []Object
	m := in.Pool.Spec.Monitoring
	if m.PodMonitor != v1alpha1.Disabled && in.Capabilities.PodMonitor {
		objects = append(objects, podMonitor(in))
	}
	if m.PrometheusRule != v1alpha1.Disabled && in.Capabilities.PrometheusRule {
		objects = append(objects, prometheusRule(in))
	}
	return objects
}

func podMonitor(in Input) Object {
	m := in.Pool.Spec.Monitoring
	return optionalObject(in, KindPodMonitor, optionalMetadata{labels: m.Labels}, map[string]any{
		"selector": map[string]any{"matchLabels": anyMap(Selector(in.Pool.Name))},
		"podMetricsEndpoints": []any{map[string]any{
			"port":     portOperations,
			"path":     contract.MetricsPath,
			"interval": fmt.Sprintf("%ds", cmp.Or(m.IntervalSeconds, defaultScrapeSeconds)),
			// Two labels of the relay are also labels of the scrape target: endpoint (an RPC
			// endpoint) and job (a maintenance job). Without honorLabels Prometheus renames the
			// relay's labels, and alerts by endpoint see only one endpoint, operations.
			"honorLabels": true,
			"relabelings": []any{map[string]any{
				"sourceLabels": []any{"__meta_kubernetes_pod_label_relaypool_dev_pool"},
				"targetLabel":  labelPool,
			}},
		}},
	})
}

func prometheusRule(in Input) Object {
	var rules []any
	for _, a := range alerts(in) {
		rules = append(rules, a.rule(in))
	}
	return optionalObject(in, KindPrometheusRule, optionalMetadata{labels: in.Pool.Spec.Monitoring.Labels}, map[string]any{
		"groups": []any{map[string]any{"name": in.Pool.Namespace + "." + in.Pool.Name + ".relaypool", "rules": rules}},
	})
}

// optionalMetadata is what the user adds to an object's metadata.
type optionalMetadata struct{ labels, annotations map[string]string }

// optionalObject makes an object of a kind for which the operator has no Go types.
func optionalObject(in Input, kind schema.GroupVersionKind, user optionalMetadata, spec map[string]any) Object {
	name := in.Pool.Name
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	u.SetNamespace(in.Pool.Namespace)
	u.SetLabels(mergeMaps(user.labels, Labels(name)))
	u.SetAnnotations(user.annotations)
	return Object{kind, name, client.ApplyConfigurationFromUnstructured(u)}
}

func anyMap(from map[string]string) map[string]any {
	to := make(map[string]any, len(from))
	for k, v := range maps.All(from) {
		to[k] = v
	}
	return to
}
