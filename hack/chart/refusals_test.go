package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/hack/chart/release"
)

// If Helm knows the cluster's APIs, the refusal names the kind that the cluster lacks.
func TestMissingKindsAreReported(t *testing.T) {
	t.Parallel()
	const values = "monitoring: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}}"
	tests := map[string]struct {
		apis []string
		want string
	}{
		"the cluster's APIs are unknown": {nil, ""},
		"nothing is installed":           {[]string{"apiregistration.k8s.io/v1"}, "but this cluster has no PrometheusRule. Install the Prometheus operator first"},
		"one of two is installed":        {[]string{"apiregistration.k8s.io/v1", "monitoring.coreos.com/v1/PrometheusRule"}, "monitoring.serviceMonitor.enabled is true, but this cluster has no ServiceMonitor"},
		"both are installed":             {[]string{"apiregistration.k8s.io/v1", "monitoring.coreos.com/v1/PrometheusRule", "monitoring.coreos.com/v1/ServiceMonitor"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := release.Render(loaded(t), parsed(t, values), release.Options{APIVersions: tc.apis})
			if tc.want == "" {
				must(t, err)
			} else if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v\nwant a refusal with: %s", err, tc.want)
			}
		})
	}
}

// The chart refuses alerts on metrics that the operator does not serve, and their scraping.
func TestMonitoringRequiresMetrics(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"serviceMonitor", "prometheusRule"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			values := parsed(t, "operator: {metrics: {enabled: false}}\nmonitoring: {"+value+": {enabled: true}}")
			_, _, err := release.Render(loaded(t), values, release.Options{})
			want := "monitoring." + value + ".enabled is true, but operator.metrics.enabled is false"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v\nwant a refusal with: %s", err, want)
			}
		})
	}
}

// Only an explicit clusterWide gives the operator the whole cluster. The chart refuses values
// with neither clusterWide nor namespaces, and values with both.
func TestClusterWideHasToBeSet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ values, want string }{
		"nothing is set":              {"{}", "neither namespaces nor clusterWide is set. Name the namespaces whose RelayPools the operator looks after, for instance --set 'namespaces={relaypool-system}'"},
		"clusterWide is false":        {"clusterWide: false", "neither namespaces nor clusterWide is set"},
		"an empty list":               {"namespaces: []", "neither namespaces nor clusterWide is set"},
		"without roles":               {"rbac: {create: false}", "neither namespaces nor clusterWide is set"},
		"both":                        {"namespaces: [team-a, team-b]\nclusterWide: true", "clusterWide is true, and namespaces has team-a, team-b"},
		"the whole cluster":           {"clusterWide: true", ""},
		"some namespaces":             {"namespaces: [team-a]", ""},
		"usable without requireLabel": {"clusterWide: true\ntenants: {usable: [team-a/rpc]}", "tenants.usable has team-a/rpc, but tenants.requireLabel is false"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := map[string]any{}
			must(t, yaml.UnmarshalStrict([]byte(tc.values), &values))
			_, _, err := release.Render(loaded(t), values, release.Options{})
			if tc.want == "" {
				must(t, err)
			} else if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v\nwant a refusal with: %s", err, tc.want)
			}
		})
	}
}

// Notes warn of settings that work differently from what users may expect.
func TestNotesWarnOfUnusualSettings(t *testing.T) {
	t.Parallel()
	prometheusAPIs := []string{"apiregistration.k8s.io/v1", "monitoring.coreos.com/v1"}
	tests := map[string]struct {
		values string
		apis   []string
		want   string
	}{
		"Prometheus does not scrape the operator":  {"{}", prometheusAPIs, "does not scrape this operator"},
		"the roles are not created":                {"rbac: {create: false}", nil, "WARNING: rbac.create is false."},
		"upgrades keep the old definition":         {"crds: {upgrade: false}", nil, "helm show crds CHART | kubectl apply --server-side -f -"},
		"the next steps":                           {"{}", nil, "kubectl create secret generic shield-database"},
		"external metrics are served":              {"externalMetrics: {enabled: true}", nil, "kubectl get apiservice v1beta1.external.metrics.k8s.io"},
		"Prometheus needs a role":                  {"monitoring: {serviceMonitor: {enabled: true}}", nil, "kubectl create clusterrolebinding relaypool-operator-metrics-reader --clusterrole=relaypool-operator-metrics-reader --serviceaccount=NAMESPACE:NAME\n    kubectl label namespace NAMESPACE metrics=enabled\n"},
		"Prometheus' namespace needs other labels": {"monitoring: {serviceMonitor: {enabled: true}}\nnetworkPolicy: {metricsNamespaceLabels: {metrics: null, scrapes: \"yes\", team: a}}", nil, "kubectl label namespace NAMESPACE scrapes=yes team=a\n"},
		"the role of Prometheus is not created":    {"monitoring: {serviceMonitor: {enabled: true}}\nrbac: {create: false}", nil, "kubectl create clusterrole relaypool-operator-metrics-reader --verb=get --non-resource-url=/metrics\n"},
		"alerts without scraping":                  {"monitoring: {prometheusRule: {enabled: true}}", nil, "RelaypoolOperatorAbsent of monitoring.prometheusRule fires"},
		"some namespaces are watched":              {"namespaces: [team-a, team-b]", nil, "looks after the RelayPools of team-a, team-b."},
		"Secrets need a label":                     {"tenants: {requireLabel: true}", nil, "kubectl label secret SECRET -n NAMESPACE relaypool.dev/usable-by=RELAYPOOL"},
		"a release of another name":                {"fullnameOverride: our-operator", nil, "kubectl rollout status deployment/our-operator"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, notes, err := release.Render(loaded(t), parsed(t, tc.values), release.Options{APIVersions: tc.apis})
			must(t, err)
			if !strings.Contains(notes, tc.want) {
				t.Errorf("got notes:\n%s\nwant in them: %s", notes, tc.want)
			}
		})
	}
	_, notes, err := release.Render(loaded(t), parsed(t, "{}"), release.Options{})
	must(t, err)
	if strings.Contains(notes, "NOTE") || strings.Contains(notes, "WARNING") {
		t.Errorf("got notes with a warning by default, want none:\n%s", notes)
	}
}

// Grafana's sidecar writes each dashboard unchanged. Helm must not evaluate the braces in a
// dashboard, which are for Grafana.
func TestEveryDashboardIsAConfigMap(t *testing.T) {
	t.Parallel()
	c, err := release.Load(chartPath)
	must(t, err)
	objects, _, err := release.Render(c, parsed(t, "monitoring: {dashboards: {enabled: true}}"), release.Options{})
	must(t, err)
	found := 0
	for _, f := range c.Files {
		file, ok := strings.CutPrefix(f.Name, "dashboards/")
		if !ok {
			continue
		}
		found++
		m := pick[corev1.ConfigMap](t, objects, "ConfigMap", "relaypool-dashboard-"+strings.TrimSuffix(file, ".json"))
		if m.Data[file] != string(f.Data) || !json.Valid(f.Data) || m.Labels["grafana_dashboard"] != "1" {
			t.Errorf("%s: the ConfigMap has other content or lacks the sidecar's label, or the content is not JSON", f.Name)
		}
		// An object may have 1.5 MB, a ConfigMap 1 MB.
		if len(f.Data) > 900_000 {
			t.Errorf("%s has %d bytes, want at most 900000", f.Name, len(f.Data))
		}
	}
	if found < 3 {
		t.Errorf("%d dashboards are in the chart, want at least 3", found)
	}
}

// Helm stores a release's chart and manifests in one Secret, which may have 1 MB.
func TestAReleaseFitsIntoItsSecret(t *testing.T) {
	t.Parallel()
	c, err := release.Load(chartPath)
	must(t, err)
	objects, notes, err := release.Render(c, parsed(t, everything), release.Options{})
	must(t, err)
	text, err := json.Marshal(map[string]any{"chart": c, "manifest": objects, "notes": notes})
	must(t, err)
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, err = w.Write(text)
	must(t, err)
	must(t, w.Close())
	// Both Helm and the API encode it in base64.
	if size := compressed.Len() * 16 / 9; size > 500_000 {
		t.Errorf("a release has %d bytes, want at most 500000", size)
	} else {
		t.Logf("a release has %d bytes", size)
	}
}
