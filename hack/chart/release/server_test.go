package release_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/hack/chart/release"
)

const (
	current = "../../../charts/relaypool"
	// previous is the package of an earlier state, as a user would have it installed.
	previous   = "testdata/relaypool-0.1.0-rc.1.tgz"
	definition = "relaypools.relaypool.dev"
	apiService = "v1beta1.external.metrics.k8s.io"
	// definitionAnnotation identifies the version of the definition in a cluster.
	definitionAnnotation = "relaypool.dev/definition"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	m.Run()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster is a real API server without the chart, and Helm as its client.
func cluster(t *testing.T) (client.Client, *release.Client) {
	t.Helper()
	c, helm, _ := clusterOf(t)
	return c, helm
}

// clusterOf is like cluster, and also returns the server, which can make other users.
func clusterOf(t *testing.T) (client.Client, *release.Client, *apiserver.Server) {
	t.Helper()
	server, err := apiserver.Start(t.Context(), apiserver.Options{Log: t.Output(), NoCRDs: true})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	config, err := server.Config()
	must(t, err)
	scheme := runtime.NewScheme()
	must(t, clientscheme.AddToScheme(scheme))
	must(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	file, err := server.Kubeconfig()
	must(t, err)
	return c, &release.Client{
		Kubeconfig: file, CacheDir: t.TempDir(), Name: release.Name, Namespace: release.Namespace,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, server
}

func load(t *testing.T, path string) *chart.Chart {
	t.Helper()
	c, err := release.Load(path)
	must(t, err)
	return c
}

// parsed returns the values of a YAML text. The chart requires namespaces or clusterWide, so
// parsed sets clusterWide if the text has neither.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	values := unmarshal(t, text)
	if values["namespaces"] == nil && values["clusterWide"] == nil {
		values["clusterWide"] = true
	}
	return values
}

// before returns values for the previous chart, which required neither namespaces nor
// clusterWide, and in which fields had other names.
func before(t *testing.T, text string) map[string]any {
	t.Helper()
	names := strings.NewReplacer("verifyingKeyConfigMapRef", "verifyingKey", "urlSecretRef", "urlFrom", "BalanceLamports", "Balance")
	return unmarshal(t, names.Replace(text))
}

func unmarshal(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	must(t, yaml.UnmarshalStrict([]byte(text), &values))
	return values
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// live returns an object from the cluster.
func live(t *testing.T, c client.Client, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := object(apiVersion, kind, namespace, name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		t.Fatalf("get %s %s: %v", kind, name, err)
	}
	return u
}

func namespace(t *testing.T, c client.Client, name string) {
	t.Helper()
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// fleet are values with a RelayPool in the namespace shield.
const fleet = `
relayPools:
  shield:
    namespace: shield
    spec:
      replicas: REPLICAS
      pool: {profile: {name: shield-pool-v1}, verifyingKeyConfigMapRef: {name: shield-verifying-key, key: verification_key.json}}
      solana: {cluster: mainnet-beta, endpoints: [{name: paid, urlSecretRef: {name: shield-rpc, key: url}}]}
      database: {urlSecretRef: {name: shield-database, key: url}}
      feePayers: {generate: {count: 4}, targetBalanceLamports: 2000000000}
      viewingKeys: {compliancePublicKey: 5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb}
`

func replicas(n string) string { return strings.Replace(fleet, "REPLICAS", n, 1) }

// another gives the chart a definition like that of a later version: with one more field,
// and another value of the annotation that identifies the version.
func another(t *testing.T, ch *chart.Chart) *chart.Chart {
	t.Helper()
	ch.Schema = nil // the schema of the values does not have the field
	for _, f := range ch.Files {
		if !strings.HasPrefix(f.Name, "crds/") {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		must(t, yaml.UnmarshalStrict(f.Data, &crd))
		crd.Annotations[definitionAnnotation] = "later"
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["note"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		var err error
		f.Data, err = yaml.Marshal(crd)
		must(t, err)
		return ch
	}
	t.Fatal("the chart has no definition")
	return nil
}

func crd(t *testing.T, c client.Client) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var out apiextensionsv1.CustomResourceDefinition
	must(t, c.Get(t.Context(), client.ObjectKey{Name: definition}, &out))
	return &out
}

// The test upgrades from the previous chart to this one and to a later one, uninstalls and
// installs again. Objects that give access to funds are never deleted.
func TestALifeOfARelease(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, helm := cluster(t)
	namespace(t, c, "shield")

	// One command makes the operator, the definition and a fleet.
	_, err := helm.Install(load(t, previous), before(t, replicas("2")))
	must(t, err)
	pool := live(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	if target, _, _ := unstructured.NestedInt64(pool.Object, "spec", "feePayers", "targetBalance"); target != 2000000000 {
		t.Errorf("the target balance is %d", target)
	}
	uid, earlier := pool.GetUID(), crd(t, c)
	operatorWorks(t, c)

	// The definition of this chart replaces the earlier one.
	_, err = helm.Upgrade(load(t, current), parsed(t, replicas("2")))
	must(t, err)
	first := crd(t, c)
	if first.UID != earlier.UID {
		t.Error("the definition is another")
	}

	// No version of Helm changes an identical definition.
	old := *helm
	old.HelmVersion = "v3.19.0"
	rel, err := old.Upgrade(load(t, current), parsed(t, replicas("3")))
	must(t, err)
	if rel.Version != 3 || rel.Chart.Metadata.Version != load(t, current).Metadata.Version {
		t.Errorf("revision %d of %s", rel.Version, rel.Chart.Metadata.Version)
	}
	if got := crd(t, c); got.UID != first.UID || got.Generation != first.Generation {
		t.Errorf("the definition was written: generation %d, before %d", got.Generation, first.Generation)
	}
	pool = live(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	if n, _, _ := unstructured.NestedInt64(pool.Object, "spec", "replicas"); n != 3 {
		t.Errorf("%d replicas, want those of the upgrade", n)
	}
	kept(t, pool)

	// For another definition Helm 3 prints the necessary command, and Helm 4 applies it.
	if _, err := old.Upgrade(another(t, load(t, current)), parsed(t, replicas("3"))); err == nil || !strings.Contains(err.Error(), "kubectl apply --server-side") {
		t.Errorf("Helm 3 upgrades to another definition: %v", err)
	}
	// The definition is applied before the RelayPools, which may use new fields.
	_, err = helm.Upgrade(another(t, load(t, current)), parsed(t, strings.Replace(replicas("3"), "spec:", "spec:\n      note: new", 1)))
	must(t, err)
	if got := crd(t, c); got.UID != first.UID || got.Annotations[definitionAnnotation] != "later" {
		t.Errorf("the definition is not the later one: %v", got.Annotations)
	}

	// A fleet that is removed from the values stays.
	_, err = helm.Upgrade(another(t, load(t, current)), parsed(t, "{}"))
	must(t, err)
	live(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")

	// Uninstalling removes only the operator.
	_, err = helm.Upgrade(another(t, load(t, current)), parsed(t, replicas("3")))
	must(t, err)
	told, err := helm.Uninstall()
	must(t, err)
	if !strings.Contains(told, "[RelayPool] shield") {
		t.Errorf("helm does not tell what it kept: %q", told)
	}
	if got := crd(t, c); got.UID != first.UID || got.DeletionTimestamp != nil {
		t.Error("the definition is gone, or going")
	}
	pool = live(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	if pool.GetUID() != uid || pool.GetDeletionTimestamp() != nil {
		t.Error("the RelayPool is gone, or going")
	}
	kept(t, pool)
	live(t, c, "v1", "Secret", "shield", "shield-payer-0-0")
	if err := c.Get(ctx, client.ObjectKey{Namespace: release.Namespace, Name: "relaypool-operator"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the operator's Deployment: %v", err)
	}

	// A new installation adopts the objects that stayed.
	_, err = helm.Install(load(t, current), parsed(t, replicas("4")))
	must(t, err)
	pool = live(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	if n, _, _ := unstructured.NestedInt64(pool.Object, "spec", "replicas"); n != 4 || pool.GetUID() != uid {
		t.Errorf("the RelayPool is another, or has %d replicas", n)
	}
	if got := crd(t, c); got.UID != first.UID {
		t.Error("the definition is another")
	}
}

// operatorWorks makes the changes that the operator would make: a finalizer and a key.
func operatorWorks(t *testing.T, c client.Client) {
	t.Helper()
	pool := object("relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	pool.SetFinalizers([]string{"relaypool.dev/keys"})
	raw, err := json.Marshal(pool)
	must(t, err)
	must(t, c.Patch(t.Context(), pool, client.RawPatch("application/apply-patch+yaml", raw), client.FieldOwner("relaypool-operator")))
	// Another user sets fields that the values do not have.
	must(t, c.Patch(t.Context(), pool, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`)), client.FieldOwner("kubectl-patch")))
	must(t, c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shield", Name: "shield-payer-0-0", Labels: map[string]string{"relaypool.dev/payer-state": "active"}},
		Data:       map[string][]byte{"key": []byte("[]")},
	}))
}

// kept checks that the changes of others are still there.
func kept(t *testing.T, pool *unstructured.Unstructured) {
	t.Helper()
	if paused, _, _ := unstructured.NestedBool(pool.Object, "spec", "paused"); !paused {
		t.Error("what somebody set beside the values is gone")
	}
	if f := pool.GetFinalizers(); len(f) != 1 {
		t.Errorf("the RelayPool's finalizers are %v", f)
	}
}

// A second command makes the objects that the first one could not make.
func TestAnInstallationThatFailedGoesOn(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	namespace(t, c, "shield")
	values := parsed(t, replicas("2"))
	pools := values["relayPools"].(map[string]any)
	pools["missing"] = map[string]any{"namespace": "nowhere", "spec": pools["shield"].(map[string]any)["spec"]}
	_, err := helm.Install(load(t, current), values)
	// A busy API server may offer the kind a moment after its definition is established.
	for i := 0; i < 100 && err != nil && strings.Contains(err.Error(), "ensure CRDs are installed first"); i++ {
		time.Sleep(100 * time.Millisecond)
		_, err = helm.Install(load(t, current), values)
	}
	if err == nil || !strings.Contains(err.Error(), `"nowhere" not found`) {
		t.Fatalf("installed into a namespace that is missing: %v", err)
	}
	// The same command succeeds once the namespace exists.
	namespace(t, c, "nowhere")
	_, err = helm.Upgrade(load(t, current), values)
	must(t, err)
	live(t, c, "relaypool.dev/v1alpha1", "RelayPool", "nowhere", "missing")
	live(t, c, "apps/v1", "Deployment", release.Namespace, "relaypool-operator")
}

// If another manager has written the definition, an upgrade reports that, and succeeds once
// the chart's definition has been applied by hand.
func TestAForeignDefinitionIsNotOverwritten(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	later := another(t, load(t, current))
	byHand(t, c, load(t, current))
	_, err := helm.Install(load(t, current), parsed(t, "{}"))
	must(t, err)
	if _, err := helm.Upgrade(later, nil); err == nil || !strings.Contains(err.Error(), "was written by kubectl (Apply)") || !strings.Contains(err.Error(), "kubectl apply --server-side --force-conflicts") {
		t.Fatalf("upgrade of another's definition: %v", err)
	}
	byHand(t, c, later)
	rel, err := helm.Upgrade(another(t, load(t, current)), nil)
	must(t, err)
	if len(rel.Hooks) != 0 {
		t.Errorf("the definition was applied again")
	}
}

// byHand applies the chart's definition as kubectl does.
func byHand(t *testing.T, c client.Client, ch *chart.Chart) {
	t.Helper()
	for _, crd := range ch.CRDObjects() {
		all, err := release.Objects(crd.File.Data)
		must(t, err)
		raw, err := json.Marshal(all[0])
		must(t, err)
		must(t, c.Patch(t.Context(), all[0], client.RawPatch("application/apply-patch+yaml", raw), client.FieldOwner("kubectl"), client.ForceOwnership))
	}
}

// adapter is another server of external metrics.
func adapter(t *testing.T, c client.Client) {
	t.Helper()
	a := object("apiregistration.k8s.io/v1", "APIService", "", apiService)
	a.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "adapter"})
	a.Object["spec"] = map[string]any{
		"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "monitoring", "name": "prometheus-adapter", "port": int64(443)},
	}
	must(t, c.Create(t.Context(), a))
}

func TestAnotherAdapterIsNamed(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	adapter(t, c)
	on := parsed(t, "externalMetrics: {enabled: true}")
	_, err := helm.Install(load(t, current), on)
	if err == nil || !strings.Contains(err.Error(), "the Service monitoring/prometheus-adapter of the Helm release adapter serves external.metrics.k8s.io in this cluster") ||
		!strings.Contains(err.Error(), "externalMetrics.enabled to false") {
		t.Fatalf("install beside another adapter: %v", err)
	}
	// Without external metrics, the notes name the server of the metrics.
	rel, err := helm.Install(load(t, current), parsed(t, "{}"))
	must(t, err)
	if !strings.Contains(rel.Info.Notes, "NOTE: the Service monitoring/prometheus-adapter of the Helm release adapter\nserves external metrics") {
		t.Errorf("the notes do not tell of the other adapter:\n%s", rel.Info.Notes)
	}
	// A later upgrade does not take the APIService over either.
	if _, err := helm.Upgrade(load(t, current), on); err == nil || !strings.Contains(err.Error(), "prometheus-adapter") {
		t.Fatalf("upgrade beside another adapter: %v", err)
	}
	// Once it is gone, the operator's own APIService replaces it.
	must(t, c.Delete(t.Context(), object("apiregistration.k8s.io/v1", "APIService", "", apiService)))
	rel, err = helm.Upgrade(load(t, current), on)
	must(t, err)
	if strings.Contains(rel.Info.Notes, "NOTE: the Service") {
		t.Errorf("the chart takes its own Service for another adapter:\n%s", rel.Info.Notes)
	}
}

// A release recognises its own objects when they get other names.
func TestExternalMetricsMoveWithTheNames(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	_, err := helm.Install(load(t, current), parsed(t, "externalMetrics: {enabled: true}"))
	must(t, err)
	_, err = helm.Upgrade(load(t, current), parsed(t, "externalMetrics: {enabled: true}\nfullnameOverride: our-operator"))
	must(t, err)
	got, _, _ := unstructured.NestedString(live(t, c, "apiregistration.k8s.io/v1", "APIService", "", apiService).Object, "spec", "service", "name")
	if got != "our-operator-external-metrics" {
		t.Errorf("the APIService leads to %q", got)
	}
	// Another release in the same namespace is a different one.
	other := *helm
	other.Name = "second"
	_, err = other.Install(load(t, current), parsed(t, "externalMetrics: {enabled: true}\nnamespaces: [relaypool-system]"))
	if err == nil || !strings.Contains(err.Error(), "the Service relaypool-system/our-operator-external-metrics of the Helm release relaypool serves") {
		t.Errorf("a second release takes the external metrics: %v", err)
	}
}

// Leader election can be turned off and on again in a cluster that has the release.
func TestTheLeaseIsGivenUpAndTakenAgain(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	_, err := helm.Install(load(t, current), parsed(t, "{}"))
	must(t, err)
	for _, step := range []struct{ values, want string }{
		{"leaderElection: {enabled: false}", "Recreate"}, {"leaderElection: {enabled: true}", "RollingUpdate"}, {"leaderElection: {enabled: false}", "Recreate"},
	} {
		_, err = helm.Upgrade(load(t, current), parsed(t, step.values))
		must(t, err)
		got, _, _ := unstructured.NestedString(live(t, c, "apps/v1", "Deployment", release.Namespace, "relaypool-operator").Object, "spec", "strategy", "type")
		if got != step.want {
			t.Errorf("with %s the strategy is %s, want %s", step.values, got, step.want)
		}
	}
}

// Two operators may be in a cluster if they have no namespace in common.
func TestOperatorsShareNoNamespace(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	for _, name := range []string{"team-a", "team-b", "team-c"} {
		namespace(t, c, name)
	}
	_, err := helm.Install(load(t, current), parsed(t, "namespaces: [team-a, team-b]"))
	must(t, err)
	second := *helm
	second.Name, second.Namespace = "second", "second-system"
	refused := func(values, want string) {
		t.Helper()
		if _, err := second.Install(load(t, current), parsed(t, values)); err == nil ||
			!strings.Contains(err.Error(), "the operator relaypool-system/relaypool-operator looks after RelayPools of "+want+" already") {
			t.Errorf("a second operator with %s: %v", values, err)
		}
	}
	refused("{}", "team-a, team-b")
	refused("namespaces: [team-c, team-b]", "team-b")
	_, err = second.Install(load(t, current), parsed(t, "namespaces: [team-c]"))
	must(t, err)
	// An upgrade may not add such a namespace either, and a new name does not change that.
	if _, err := second.Upgrade(load(t, current), parsed(t, "namespaces: [team-c, team-a]")); err == nil || !strings.Contains(err.Error(), "RelayPools of team-a already") {
		t.Errorf("the second operator spreads: %v", err)
	}
	_, err = second.Upgrade(load(t, current), parsed(t, "namespaces: [team-c]\nfullnameOverride: other-operator"))
	must(t, err)
	_, err = second.Uninstall()
	must(t, err)

	// An operator whose settings are arguments, as in an installation by hand, counts as well,
	// and one scaled to zero does not.
	var d appsv1.Deployment
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: release.Namespace, Name: "relaypool-operator"}, &d))
	for args, want := range map[string]string{"--namespaces=team-c": "team-c", "--log-level=debug": "the whole cluster"} {
		d.Spec.Template.Spec.Containers[0].Args, d.Spec.Template.Spec.Containers[0].Env = []string{"run", args}, nil
		must(t, c.Update(t.Context(), &d))
		refused("{}", want)
	}
	d.Spec.Replicas = new(int32)
	must(t, c.Update(t.Context(), &d))
	_, err = second.Install(load(t, current), parsed(t, "{}"))
	must(t, err)
}

// Helm does not remove the fields that the operator writes into the APIService.
func TestTheAuthoritySurvivesAnUpgrade(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	on := parsed(t, "externalMetrics: {enabled: true}")
	_, err := helm.Install(load(t, current), on)
	must(t, err)
	a := object("apiregistration.k8s.io/v1", "APIService", "", apiService)
	must(t, c.Patch(t.Context(), a, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"caBundle":"`+bundle+`"}}`)), client.FieldOwner("relaypool-operator")))
	for _, values := range []string{"externalMetrics: {enabled: true}\noperator: {replicas: 3}", "externalMetrics: {enabled: true}\nextraLabels: {a: b}"} {
		_, err = helm.Upgrade(load(t, current), parsed(t, values))
		must(t, err)
		got, _, _ := unstructured.NestedString(live(t, c, "apiregistration.k8s.io/v1", "APIService", "", apiService).Object, "spec", "caBundle")
		if got != bundle {
			t.Errorf("after an upgrade with %q the authority is %q", values, got)
		}
	}
}

// bundle is base64 of text that is not a certificate, which the API server accepts.
const bundle = "Y2VydGlmaWNhdGU="

// The administrator of one namespace can install the operator for it, once the definition and
// the roles exist.
func TestTheAdministratorOfANamespaceInstalls(t *testing.T) {
	t.Parallel()
	c, helm, server := clusterOf(t)
	namespace(t, c, release.Namespace)
	// Bind the parts of the role admin one by one: no controller aggregates them here.
	for _, part := range []string{"system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view"} {
		must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: release.Namespace, Name: part},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: part},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ada"}},
		}))
	}
	ada, err := server.User("ada")
	must(t, err)
	helm.Kubeconfig, helm.InNamespace = kubeconfig(t, ada), true
	values := parsed(t, "namespaces: [relaypool-system]\nrbac: {create: false}\ncrds: {upgrade: false}\noperator: {metrics: {enabled: false}}")
	_, err = helm.Install(load(t, current), values)
	must(t, err)
	_, err = helm.Upgrade(load(t, current), values)
	must(t, err)
	live(t, c, "apps/v1", "Deployment", release.Namespace, "relaypool-operator")
	// With roles, the API server reports the missing permissions.
	if _, err := helm.Upgrade(load(t, current), parsed(t, "namespaces: [relaypool-system]\ncrds: {upgrade: false}")); !apierrors.IsForbidden(err) && (err == nil || !strings.Contains(err.Error(), "forbidden")) {
		t.Errorf("made roles without the right to: %v", err)
	}
}

// kubeconfig is a file with that user's credentials.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file))
	return file
}

// An API server accepts every object of the golden files: no unknown field, no wrong type, no
// name that is too long.
func TestEveryObjectIsTaken(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	// Make the definition, and the namespaces that the golden files name.
	_, err := helm.Install(load(t, current), parsed(t, "{}"))
	must(t, err)
	for _, name := range []string{"team-a", "team-b", "infra"} {
		namespace(t, c, name)
	}
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		must(t, c.Create(t.Context(), apiservertest.ForeignCRD(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind}, strings.ToLower(kind)+"s")))
	}
	files, err := filepath.Glob("../testdata/*.golden.yaml")
	must(t, err)
	if len(files) < 12 {
		t.Fatalf("%d goldens were found", len(files))
	}
	// The field manager is Helm's name in this process, so that fields which Helm has set and a
	// golden lacks are removed, as in an upgrade.
	owner := client.FieldOwner(filepath.Base(os.Args[0]))
	for _, file := range files {
		for _, u := range objects(t, file) {
			if u.GetKind() == "CustomResourceDefinition" {
				continue
			}
			raw, err := json.Marshal(u)
			must(t, err)
			eventually(t, func(ctx context.Context) error {
				return c.Patch(ctx, u.DeepCopy(), client.RawPatch("application/apply-patch+yaml", raw), client.DryRunAll, client.ForceOwnership,
					owner, client.FieldValidation(metav1.FieldValidationStrict))
			}, file+": apply "+u.GetKind()+" "+u.GetName())
		}
	}
}

// eventually repeats a call while it fails because a definition is not served yet.
func eventually(t *testing.T, try func(context.Context) error, what string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := try(t.Context())
		if err == nil {
			return
		}
		if !apierrors.IsNotFound(err) || time.Now().After(deadline) {
			t.Errorf("%s: %v", what, err)
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func objects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	out, err := release.Objects(content)
	must(t, err)
	return out
}
