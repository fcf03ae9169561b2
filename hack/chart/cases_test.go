package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/hack/chart/release"
)

const (
	root      = "../.."
	chartPath = root + "/charts/relaypool"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pool is the spec of a RelayPool in the chart's values.
const pool = `
      pool: {profile: {name: shield-pool-v1}, verifyingKeyConfigMapRef: {name: shield-verifying-key, key: verification_key.json}}
      solana: {cluster: mainnet-beta, endpoints: [{name: paid, urlSecretRef: {name: shield-rpc, key: url}}]}
      database: {urlSecretRef: {name: shield-database, key: url}}
      feePayers: {generate: {count: 4}}
      viewingKeys: {compliancePublicKey: 5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb}
`

// renderCase is values for the chart, with options for rendering it.
type renderCase struct {
	values  string
	options release.Options
}

// renderCases are rendered into testdata; other tests check them too. Their keys become the
// names of golden files.
func renderCases() map[string]renderCase {
	return map[string]renderCase{
		"the whole cluster":          {},
		"another release":            {options: release.Options{Name: "blue", Namespace: "infra"}},
		"some namespaces":            {values: `namespaces: [team-a, team-b]`},
		"namespaces without metrics": {values: "namespaces: [team-a]\noperator: {metrics: {enabled: false}}"},
		"external metrics":           {values: `externalMetrics: {enabled: true}`},
		"monitoring": {values: `
monitoring:
  serviceMonitor: {enabled: true, labels: {release: prometheus}, interval: 30s}
  prometheusRule: {enabled: true, labels: {release: prometheus}}
  dashboards: {enabled: true, folder: Relays}`},
		"a private registry": {values: `
imageRegistry: registry.your.org/mirror
imagePullSecrets: [{name: mirror}]
operator: {image: {digest: "sha256:` + strings.Repeat("a1", 32) + `", pullPolicy: Always}}
relay: {image: {tag: 0.1.1}}`},
		"fleets": {values: `
relayPools:
  shield:
    spec:` + pool + `
      replicas: 2
  other:
    namespace: team-a
    labels: {team: a}
    annotations: {note: the other one}
    spec:` + pool},
		"another name": {values: `nameOverride: mixer`, options: release.Options{Name: "blue"}},
		"several replicas": {values: `
operator: {replicas: 3}
leaderElection: {leaseName: lead, leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 4s}`},
		"one replica without a Lease": {values: `leaderElection: {enabled: false}`},
		"external permissions": {values: `
rbac: {create: false}
serviceAccount: {create: false, name: relays}
networkPolicy: {enabled: false}`},
		"a certificate for metrics": {values: `
operator: {metrics: {certificateSecret: operator-metrics}}
monitoring: {serviceMonitor: {enabled: true, authorization: {credentials: {name: prometheus-token, key: token}}, tlsConfig: {insecureSkipVerify: false, ca: {secret: {name: operator-metrics, key: ca.crt}}, serverName: relaypool-operator-metrics}}}`},
		"everything":                   {values: everything},
		"an upgrade":                   {values: "{}", options: release.Options{Upgrade: true}},
		"tenants that share a cluster": {values: example("multi-tenant")},
	}
}

// example returns a values file of the chart's folder examples.
func example(name string) string {
	content, err := os.ReadFile(filepath.Join(chartPath, "examples", name+".yaml"))
	if err != nil {
		panic(err)
	}
	return string(content)
}

// everything gives each value something else than its default, where the other values allow
// it.
const everything = `
imageRegistry: registry.your.org
imagePullSecrets: [{name: mirror}]
extraLabels: {cost-centre: relays}
relay: {image: {registry: r, repository: our/relay, tag: 1.2.3}}
namespaces: [team-a, relaypool-system]
tenants: {images: [registry.your.org/our/*], templateFields: [labels], apiFields: [ingress], requireLabel: true, usable: [team-a/shared]}
relayPools:
  shield:
    namespace: team-a
    labels: {team: a}
    spec:` + pool + `
operator:
  replicas: 2
  image: {registry: r, repository: our/operator, tag: 1.2.3, pullPolicy: Always}
  concurrentReconciles: 4
  checkWorkers: 5
  refsInterval: 30s
  resync: 1h
  log: {level: debug, format: json}
  metrics: {certificateSecret: operator-metrics}
  resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1Gi}}
  extraArgs: [--kubeconfig=/etc/cluster/kubeconfig]
  extraEnv: [{name: HTTPS_PROXY, value: "http://proxy.your.org:3128"}]
  extraVolumes: [{name: cluster, secret: {secretName: cluster}}]
  extraVolumeMounts: [{name: cluster, mountPath: /etc/cluster, readOnly: true}]
  podSecurityContext: {runAsUser: 12345}
  securityContext: {runAsGroup: 12345}
  annotations: {note: ours}
  revisionHistoryLimit: 2
  podLabels: {team: relays}
  podAnnotations: {note: ours}
  nodeSelector: {kubernetes.io/arch: amd64}
  tolerations: [{key: relays, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: relays, operator: Exists}]}]}}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app.kubernetes.io/name: relaypool-operator}}}]
  priorityClassName: relays
leaderElection: {leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 4s}
serviceAccount: {name: relays, annotations: {note: ours}}
externalMetrics: {enabled: true}
monitoring:
  serviceMonitor: {enabled: true, labels: {release: prometheus}, interval: 30s}
  prometheusRule: {enabled: true, labels: {release: prometheus}}
  dashboards: {enabled: true, labels: {dashboards: "yes"}, annotations: {note: ours}, folder: Relays}
networkPolicy: {metricsNamespaceLabels: {scrapes: "yes"}}
extraObjects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{ .Release.Name }}-more", namespace: "{{ .Release.Namespace }}"}
`

// loaded returns the chart with one small dashboard in place of the real dashboards, which
// change often.
func loaded(t *testing.T) *chart.Chart {
	t.Helper()
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that reads other modules' files holds until this changes
	c, err := release.Load(chartPath)
	must(t, err)
	c.Files = slices.DeleteFunc(c.Files, func(f *common.File) bool { return strings.HasPrefix(f.Name, "dashboards/") })
	c.Files = append(c.Files, &common.File{Name: "dashboards/example.json", Data: []byte(`{"title": "{{ braces }}"}`)})
	return c
}

// parsed returns the values of a YAML text. The chart requires namespaces or clusterWide, so
// parsed sets clusterWide if the text has neither.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	must(t, yaml.UnmarshalStrict([]byte(text), &values))
	if values["namespaces"] == nil && values["clusterWide"] == nil {
		values["clusterWide"] = true
	}
	return values
}

// rendered returns the objects and the notes of a case.
func rendered(t *testing.T, s renderCase) ([]*unstructured.Unstructured, string) {
	t.Helper()
	objects, notes, err := release.Render(loaded(t), parsed(t, s.values), s.options)
	must(t, err)
	if len(objects) < 2 {
		t.Fatalf("%d objects were rendered, want at least 2", len(objects))
	}
	return objects, notes
}

// pick returns the object of a kind with that name, as the requested type.
func pick[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() == kind && u.GetName() == name {
			out := new(T)
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, out, true))
			return out
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}
