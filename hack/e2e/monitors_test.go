package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// monitorsManifest has a Prometheus.
//
//go:embed monitors.yaml
var monitorsManifest string

// prometheusPort is the port of the Service that the Prometheus operator makes.
const prometheusPort = 9090

// monitors runs the Prometheus operator and a Prometheus, which know the fleet and the operator by the
// objects that the operator and the chart make.
func (s *suite) monitors(t *testing.T) {
	s.startTraffic(t, calmRate)
	bundle, err := os.ReadFile(s.inModule(t, "prometheus-operator", "github.com/prometheus-operator/prometheus-operator", "bundle.yaml"))
	ok(t, err)
	const registry, version = "quay.io/prometheus-operator/", ":v0.85.0"
	s.applyForeign(t, []byte(strings.NewReplacer("namespace: default", "namespace: "+namespace,
		registry+"prometheus-operator"+version, s.images.prometheusOperator,
		registry+"prometheus-config-reloader"+version, s.images.prometheusReloader).Replace(string(bundle))))
	s.applyForeign(t, []byte(strings.NewReplacer("PROMETHEUS_IMAGE", s.images.prometheus, "NAMESPACE", namespace).Replace(monitorsManifest)))
	monitors := &unstructured.UnstructuredList{}
	monitors.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitorList"})
	s.await(t, "the cluster has ServiceMonitors", time.Minute, func(ctx context.Context) error { return s.kube.List(ctx, monitors) })
	s.values["monitoring"] = map[string]any{"serviceMonitor": map[string]any{"enabled": true}, "prometheusRule": map[string]any{"enabled": true}}
	s.deploy(t, "upgrade")
	s.fleet.change(t, func(spec *v1alpha1.RelayPoolSpec) {
		spec.Monitoring.IntervalSeconds = 5
		spec.NetworkPolicy.OperationsFrom = append(spec.NetworkPolicy.OperationsFrom,
			networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "prometheus"}}})
	})
	s.awaitReady(t, namespace, map[string]string{"app.kubernetes.io/name": "prometheus"}, 1)
	s.log(t, "the Prometheus operator runs a Prometheus")
	pods := s.fleet.awaitPods(t, "serves", nil)
	s.await(t, "Prometheus scrapes all relays and operators", 4*time.Minute, func(ctx context.Context) error {
		return s.scraped(ctx, len(pods))
	})
	s.log(t, "Prometheus scrapes %d relays and %d operators", len(pods), operatorReplicas)
	s.await(t, "Prometheus has evaluated every alert", 4*time.Minute, s.alertsEvaluated)
	s.log(t, "Prometheus has evaluated every alert")
	s.await(t, "the dashboards show data", 4*time.Minute, func(ctx context.Context) error {
		withData, queries, err := s.evaluatePanels(ctx)
		if err == nil {
			s.figure("queries of the dashboards with data", "%d of %d", withData, queries)
		}
		return err
	})

	delete(s.values, "monitoring")
	s.deploy(t, "upgrade")
	prometheus := &unstructured.Unstructured{}
	prometheus.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"})
	prometheus.SetName("e2e")
	prometheus.SetNamespace(namespace)
	s.deleteObject(t, prometheus, 2*time.Minute)
	s.deleteForeign(t)
}

// prometheusAnswer is an answer of Prometheus' API.
type prometheusAnswer struct {
	Status, Error string
	Data          struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
}

func (s *suite) askPrometheus(ctx context.Context, path string, query url.Values) (*prometheusAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, serviceURL("prometheus-operated", prometheusPort)+"/api/v1/"+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := s.stage.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	answer := &prometheusAnswer{}
	err = errors.Join(json.NewDecoder(response.Body).Decode(answer), response.Body.Close())
	if err == nil && answer.Status != "success" {
		err = fmt.Errorf("Prometheus answers %s: %s", response.Status, answer.Error)
	}
	return answer, err
}

// scraped returns an error until Prometheus scrapes every relay of the fleet and every operator.
func (s *suite) scraped(ctx context.Context, relays int) error {
	for selector, want := range map[string]int{
		fmt.Sprintf(`up{namespace=%q,pool=%q,container=%q} == 1`, namespace, fleetName, relayContainer): relays,
		fmt.Sprintf(`up{namespace=%q,container=%q} == 1`, operatorNamespace, operatorContainer):         operatorReplicas,
	} {
		answer, err := s.askPrometheus(ctx, "query", url.Values{"query": {selector}})
		if err != nil {
			return err
		}
		if len(answer.Data.Result) != want {
			return fmt.Errorf("%s has %d results, expected %d", selector, len(answer.Data.Result), want)
		}
	}
	return nil
}

// alertsEvaluated returns an error until Prometheus has evaluated every alert that has a page in the
// documentation.
func (s *suite) alertsEvaluated(ctx context.Context) error {
	pages, err := filepath.Glob("docs/reference/alerts/*.md")
	if err != nil {
		return err
	}
	answer, err := s.askPrometheus(ctx, "rules", url.Values{"type": {"alert"}})
	if err != nil {
		return err
	}
	var healthy []string
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				return fmt.Errorf("the rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
			healthy = append(healthy, rule.Name)
		}
	}
	// The fleet has neither remote signers nor spend caps.
	without := []string{"RelaypoolSignerUnavailable", "RelaypoolSpendCapReached", "RelaypoolSpendCapNearlyReached"}
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.Base(page), ".md"); slices.Contains(healthy, name) == slices.Contains(without, name) {
			return fmt.Errorf("Prometheus has %d alerts; %s is missing, or not expected", len(healthy), name)
		}
	}
	return nil
}

// evaluatePanels evaluates every query of the dashboards. It returns an error until most have data; the
// others show what has not happened, or what another exporter measures.
func (s *suite) evaluatePanels(ctx context.Context) (withData, queries int, err error) {
	files, err := filepath.Glob("charts/relaypool/dashboards/*.json")
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(content, &board); err != nil {
			return 0, 0, err
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				query := strings.NewReplacer("$namespace", namespace, "$pool", fleetName, "$__rate_interval", "1m").Replace(target.Expr)
				answer, err := s.askPrometheus(ctx, "query", url.Values{"query": {query}})
				if err != nil {
					return 0, 0, fmt.Errorf("the panel %q of %s: %w", panel.Title, file, err)
				}
				queries++
				if len(answer.Data.Result) > 0 {
					withData++
				}
			}
		}
	}
	if withData < queries*2/3 {
		return 0, 0, fmt.Errorf("only %d of %d queries of the dashboards have data", withData, queries)
	}
	return withData, queries, nil
}
