package release_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
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
	currentChart = "../../../charts/relaypool"
	// previousChart is the package of an earlier version, which a user may have installed.
	previousChart = "testdata/relaypool-0.1.0-rc.1.tgz"
	definition    = "relaypools.relaypool.dev"
	apiService    = "v1beta1.external.metrics.k8s.io"
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

// cluster starts a real API server without the chart, and returns its client and Helm.
func cluster(t *testing.T) (client.Client, *release.Client) {
	t.Helper()
	c, helm, _ := clusterWithServer(t)
	return c, helm
}

// clusterWithServer is like cluster, and also returns the server, which can make other users.
func clusterWithServer(t *testing.T) (client.Client, *release.Client, *apiserver.Server) {
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
	_ = os.Getenv("RELAYPOOL_SOURCES") // the cached result of a test that reads other modules' files holds until this changes
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

// previousValues returns values for the previous chart, which required neither namespaces nor
// clusterWide, and in which some fields had other names.
func previousValues(t *testing.T, text string) map[string]any {
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

// getObject returns an object from the cluster.
func getObject(t *testing.T, c client.Client, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := object(apiVersion, kind, namespace, name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		t.Fatalf("get %s %s: %v", kind, name, err)
	}
	return u
}

func createNamespace(t *testing.T, c client.Client, name string) {
	t.Helper()
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// fleet is values with a RelayPool in the namespace shield.
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

func fleetValues(replicas string) string { return strings.Replace(fleet, "REPLICAS", replicas, 1) }

// withLaterDefinition gives the chart the definition of a later version: with one more field,
// and another value of the annotation that identifies the version.
func withLaterDefinition(t *testing.T, ch *chart.Chart) *chart.Chart {
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

func installedCRD(t *testing.T, c client.Client) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var out apiextensionsv1.CustomResourceDefinition
	must(t, c.Get(t.Context(), client.ObjectKey{Name: definition}, &out))
	return &out
}

// The test upgrades from the previous chart to this one and to a later one, uninstalls and
// installs again. The definition, the RelayPool and the keys are never deleted.
func TestUpgradeUninstallAndReinstallKeepRelayPoolsAndKeys(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, helm := cluster(t)
	createNamespace(t, c, "shield")

	// One command creates the operator, the definition and a fleet.
	_, err := helm.Install(load(t, previousChart), previousValues(t, fleetValues("2")))
	must(t, err)
	pool := getObject(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	if target, _, _ := unstructured.NestedInt64(pool.Object, "spec", "feePayers", "targetBalance"); target != 2000000000 {
		t.Errorf("the target balance is %d, want 2000000000", target)
	}
	uid, previousCRD := pool.GetUID(), installedCRD(t, c)
	changeAsOperator(t, c)

	// The definition of this chart replaces the earlier one.
	_, err = helm.Upgrade(load(t, currentChart), parsed(t, fleetValues("2")))
	must(t, err)
	first := installedCRD(t, c)
	if first.UID != previousCRD.UID {
		t.Error("the definition was deleted and created again")
	}

	// No version of Helm changes an identical definition.
	helm3 := *helm
	helm3.HelmVersion = "v3.19.0"
	rel, err := helm3.Upgrade(load(t, currentChart), parsed(t, fleetValues("3")))
	must(t, err)
	if rel.Version != 3 || rel.Chart.Metadata.Version != load(t, currentChart).Metadata.Version {
		t.Errorf("got revision %d of chart version %s, want revision 3 of the current chart", rel.Version, rel.Chart.Metadata.Version)
	}
	if got := installedCRD(t, c); got.UID != first.UID || got.Generation != first.Generation {
		t.Errorf("the definition was written: got generation %d, want %d as before", got.Generation, first.Generation)
	}
	pool = getObject(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	if n, _, _ := unstructured.NestedInt64(pool.Object, "spec", "replicas"); n != 3 {
		t.Errorf("got %d replicas, want 3 as in the upgrade's values", n)
	}
	checkChangesKept(t, pool)

	// If the definition differs, Helm 3 prints the command that applies it, and Helm 4 applies it.
	if _, err := helm3.Upgrade(withLaterDefinition(t, load(t, currentChart)), parsed(t, fleetValues("3"))); err == nil || !strings.Contains(err.Error(), "kubectl apply --server-side") {
		t.Errorf("upgrade to another definition with Helm 3: got error %v, want one with the kubectl command", err)
	}
	// The definition is applied before the RelayPools, which may use new fields.
	_, err = helm.Upgrade(withLaterDefinition(t, load(t, currentChart)), parsed(t, strings.Replace(fleetValues("3"), "spec:", "spec:\n      note: new", 1)))
	must(t, err)
	if got := installedCRD(t, c); got.UID != first.UID || got.Annotations[definitionAnnotation] != "later" {
		t.Errorf("got a definition with annotations %v, want the later definition", got.Annotations)
	}

	// A fleet that is removed from the values stays.
	_, err = helm.Upgrade(withLaterDefinition(t, load(t, currentChart)), parsed(t, "{}"))
	must(t, err)
	getObject(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")

	// Uninstalling removes only the operator.
	_, err = helm.Upgrade(withLaterDefinition(t, load(t, currentChart)), parsed(t, fleetValues("3")))
	must(t, err)
	info, err := helm.Uninstall()
	must(t, err)
	if !strings.Contains(info, "[RelayPool] shield") {
		t.Errorf("helm reports %q, want the RelayPool that it kept", info)
	}
	if got := installedCRD(t, c); got.UID != first.UID || got.DeletionTimestamp != nil {
		t.Error("the definition is deleted or being deleted")
	}
	pool = getObject(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	if pool.GetUID() != uid || pool.GetDeletionTimestamp() != nil {
		t.Error("the RelayPool is deleted or being deleted")
	}
	checkChangesKept(t, pool)
	getObject(t, c, "v1", "Secret", "shield", "shield-payer-0-0")
	if err := c.Get(ctx, client.ObjectKey{Namespace: release.Namespace, Name: "relaypool-operator"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("get the operator's Deployment: error %v, want not found", err)
	}

	// A new installation adopts the objects that stayed.
	_, err = helm.Install(load(t, currentChart), parsed(t, fleetValues("4")))
	must(t, err)
	pool = getObject(t, c, "relaypool.dev/v1alpha1", "RelayPool", "shield", "shield")
	if n, _, _ := unstructured.NestedInt64(pool.Object, "spec", "replicas"); n != 4 || pool.GetUID() != uid {
		t.Errorf("the RelayPool was created again, or has %d replicas, want 4", n)
	}
	if got := installedCRD(t, c); got.UID != first.UID {
		t.Error("the definition was deleted and created again")
	}
}

// changeAsOperator makes the changes that the operator would make: a finalizer and a key.
func changeAsOperator(t *testing.T, c client.Client) {
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

// checkChangesKept checks that the changes of changeAsOperator are still there.
func checkChangesKept(t *testing.T, pool *unstructured.Unstructured) {
	t.Helper()
	if paused, _, _ := unstructured.NestedBool(pool.Object, "spec", "paused"); !paused {
		t.Error("spec.paused is gone, which the values do not set")
	}
	if f := pool.GetFinalizers(); len(f) != 1 {
		t.Errorf("the RelayPool's finalizers are %v, want the operator's", f)
	}
}

// An upgrade creates the objects that the failed installation could not create.
func TestUpgradeCompletesAFailedInstallation(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	createNamespace(t, c, "shield")
	values := parsed(t, fleetValues("2"))
	pools := values["relayPools"].(map[string]any)
	pools["missing"] = map[string]any{"namespace": "nowhere", "spec": pools["shield"].(map[string]any)["spec"]}
	_, err := helm.Install(load(t, currentChart), values)
	// A busy API server may serve the kind only a moment after its definition is established.
	for i := 0; i < 100 && err != nil && strings.Contains(err.Error(), "ensure CRDs are installed first"); i++ {
		time.Sleep(100 * time.Millisecond)
		_, err = helm.Install(load(t, currentChart), values)
	}
	if err == nil || !strings.Contains(err.Error(), `"nowhere" not found`) {
		t.Fatalf("install into a missing namespace: got error %v, want that it is not found", err)
	}
	// An upgrade succeeds once the namespace exists.
	createNamespace(t, c, "nowhere")
	_, err = helm.Upgrade(load(t, currentChart), values)
	must(t, err)
	getObject(t, c, "relaypool.dev/v1alpha1", "RelayPool", "nowhere", "missing")
	getObject(t, c, "apps/v1", "Deployment", release.Namespace, "relaypool-operator")
}

// If another field manager has written the definition, an upgrade fails and reports it. The
// upgrade succeeds after the chart's definition has been applied by hand.
func TestDefinitionOfAnotherFieldManagerIsNotOverwritten(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	later := withLaterDefinition(t, load(t, currentChart))
	applyByHand(t, c, load(t, currentChart))
	_, err := helm.Install(load(t, currentChart), parsed(t, "{}"))
	must(t, err)
	if _, err := helm.Upgrade(later, nil); err == nil || !strings.Contains(err.Error(), "was written by kubectl (Apply)") || !strings.Contains(err.Error(), "kubectl apply --server-side --force-conflicts") {
		t.Fatalf("upgrade of a definition that kubectl wrote: got error %v, want a conflict with the kubectl command", err)
	}
	applyByHand(t, c, later)
	rel, err := helm.Upgrade(withLaterDefinition(t, load(t, currentChart)), nil)
	must(t, err)
	for _, hook := range rel.Hooks {
		if !slices.Contains(hook.Events, helmrelease.HookTest) {
			t.Errorf("the upgrade applied the definition that was there, with the hook %s; want none", hook.Path)
		}
	}
}

// applyByHand applies the chart's definition as kubectl does.
func applyByHand(t *testing.T, c client.Client, ch *chart.Chart) {
	t.Helper()
	for _, crd := range ch.CRDObjects() {
		all, err := release.Objects(crd.File.Data)
		must(t, err)
		raw, err := json.Marshal(all[0])
		must(t, err)
		must(t, c.Patch(t.Context(), all[0], client.RawPatch("application/apply-patch+yaml", raw), client.FieldOwner("kubectl"), client.ForceOwnership))
	}
}

// createAdapter registers another server of external metrics, prometheus-adapter.
func createAdapter(t *testing.T, c client.Client) {
	t.Helper()
	a := object("apiregistration.k8s.io/v1", "APIService", "", apiService)
	a.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "adapter"})
	a.Object["spec"] = map[string]any{
		"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "monitoring", "name": "prometheus-adapter", "port": int64(443)},
	}
	must(t, c.Create(t.Context(), a))
}

func TestRefusalNamesAnotherMetricsAdapter(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	createAdapter(t, c)
	enabled := parsed(t, "externalMetrics: {enabled: true}")
	_, err := helm.Install(load(t, currentChart), enabled)
	if err == nil || !strings.Contains(err.Error(), "the Service monitoring/prometheus-adapter of the Helm release adapter serves external.metrics.k8s.io in this cluster") ||
		!strings.Contains(err.Error(), "externalMetrics.enabled to false") {
		t.Fatalf("install beside another adapter: got error %v, want one that names the adapter", err)
	}
	// Without externalMetrics.enabled, the notes name the adapter that serves external metrics.
	rel, err := helm.Install(load(t, currentChart), parsed(t, "{}"))
	must(t, err)
	if !strings.Contains(rel.Info.Notes, "NOTE: the Service monitoring/prometheus-adapter of the Helm release adapter\nserves external metrics") {
		t.Errorf("got notes that do not name the adapter:\n%s", rel.Info.Notes)
	}
	// An upgrade does not take over the adapter's APIService either.
	if _, err := helm.Upgrade(load(t, currentChart), enabled); err == nil || !strings.Contains(err.Error(), "prometheus-adapter") {
		t.Fatalf("upgrade beside another adapter: got error %v, want one that names the adapter", err)
	}
	// After the adapter's APIService is deleted, the chart creates its own.
	must(t, c.Delete(t.Context(), object("apiregistration.k8s.io/v1", "APIService", "", apiService)))
	rel, err = helm.Upgrade(load(t, currentChart), enabled)
	must(t, err)
	if strings.Contains(rel.Info.Notes, "NOTE: the Service") {
		t.Errorf("the notes name the chart's own Service as another adapter:\n%s", rel.Info.Notes)
	}
}

// A release recognises its own APIService after its objects are renamed.
func TestExternalMetricsFollowAChangedName(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	_, err := helm.Install(load(t, currentChart), parsed(t, "externalMetrics: {enabled: true}"))
	must(t, err)
	_, err = helm.Upgrade(load(t, currentChart), parsed(t, "externalMetrics: {enabled: true}\nfullnameOverride: our-operator"))
	must(t, err)
	got, _, _ := unstructured.NestedString(getObject(t, c, "apiregistration.k8s.io/v1", "APIService", "", apiService).Object, "spec", "service", "name")
	if got != "our-operator-external-metrics" {
		t.Errorf("the APIService names the Service %q, want our-operator-external-metrics", got)
	}
	// The chart refuses a second release with external metrics, also in the same namespace.
	other := *helm
	other.Name = "second"
	_, err = other.Install(load(t, currentChart), parsed(t, "externalMetrics: {enabled: true}\nnamespaces: [relaypool-system]"))
	if err == nil || !strings.Contains(err.Error(), "the Service relaypool-system/our-operator-external-metrics of the Helm release relaypool serves") {
		t.Errorf("install a second release with external metrics: got error %v, want one that names the first release's Service", err)
	}
}

// An upgrade can disable leader election and enable it again.
func TestUpgradeDisablesAndEnablesLeaderElection(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	_, err := helm.Install(load(t, currentChart), parsed(t, "{}"))
	must(t, err)
	for _, step := range []struct{ values, want string }{
		{"leaderElection: {enabled: false}", "Recreate"}, {"leaderElection: {enabled: true}", "RollingUpdate"}, {"leaderElection: {enabled: false}", "Recreate"},
	} {
		_, err = helm.Upgrade(load(t, currentChart), parsed(t, step.values))
		must(t, err)
		got, _, _ := unstructured.NestedString(getObject(t, c, "apps/v1", "Deployment", release.Namespace, "relaypool-operator").Object, "spec", "strategy", "type")
		if got != step.want {
			t.Errorf("with %s the Deployment's strategy is %s, want %s", step.values, got, step.want)
		}
	}
}

// A cluster can have two operators if they have no namespace in common.
func TestTwoOperatorsCannotShareANamespace(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	for _, name := range []string{"team-a", "team-b", "team-c"} {
		createNamespace(t, c, name)
	}
	_, err := helm.Install(load(t, currentChart), parsed(t, "namespaces: [team-a, team-b]"))
	must(t, err)
	second := *helm
	second.Name, second.Namespace = "second", "second-system"
	refused := func(values, want string) {
		t.Helper()
		if _, err := second.Install(load(t, currentChart), parsed(t, values)); err == nil ||
			!strings.Contains(err.Error(), "the operator relaypool-system/relaypool-operator looks after RelayPools of "+want+" already") {
			t.Errorf("install a second operator with %s: got error %v, want one that names %s", values, err, want)
		}
	}
	refused("{}", "team-a, team-b")
	refused("namespaces: [team-c, team-b]", "team-b")
	_, err = second.Install(load(t, currentChart), parsed(t, "namespaces: [team-c]"))
	must(t, err)
	// An upgrade cannot add a namespace of the first operator either, and can change the name.
	if _, err := second.Upgrade(load(t, currentChart), parsed(t, "namespaces: [team-c, team-a]")); err == nil || !strings.Contains(err.Error(), "RelayPools of team-a already") {
		t.Errorf("add the first operator's namespace to the second: got error %v, want one that names team-a", err)
	}
	_, err = second.Upgrade(load(t, currentChart), parsed(t, "namespaces: [team-c]\nfullnameOverride: other-operator"))
	must(t, err)
	_, err = second.Uninstall()
	must(t, err)

	// The chart also recognises an operator whose settings are arguments, as in an installation
	// by hand. It ignores an operator that is scaled to zero.
	var d appsv1.Deployment
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: release.Namespace, Name: "relaypool-operator"}, &d))
	for args, want := range map[string]string{"--namespaces=team-c": "team-c", "--log-level=debug": "the whole cluster"} {
		d.Spec.Template.Spec.Containers[0].Args, d.Spec.Template.Spec.Containers[0].Env = []string{"run", args}, nil
		must(t, c.Update(t.Context(), &d))
		refused("{}", want)
	}
	d.Spec.Replicas = new(int32)
	must(t, c.Update(t.Context(), &d))
	_, err = second.Install(load(t, currentChart), parsed(t, "{}"))
	must(t, err)
}

// Helm does not remove the fields that the operator writes into the APIService.
func TestUpgradeKeepsTheCABundle(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	enabled := parsed(t, "externalMetrics: {enabled: true}")
	_, err := helm.Install(load(t, currentChart), enabled)
	must(t, err)
	a := object("apiregistration.k8s.io/v1", "APIService", "", apiService)
	must(t, c.Patch(t.Context(), a, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"caBundle":"`+bundle+`"}}`)), client.FieldOwner("relaypool-operator")))
	for _, values := range []string{"externalMetrics: {enabled: true}\noperator: {replicas: 3}", "externalMetrics: {enabled: true}\nextraLabels: {a: b}"} {
		_, err = helm.Upgrade(load(t, currentChart), parsed(t, values))
		must(t, err)
		got, _, _ := unstructured.NestedString(getObject(t, c, "apiregistration.k8s.io/v1", "APIService", "", apiService).Object, "spec", "caBundle")
		if got != bundle {
			t.Errorf("after an upgrade with %q the CA bundle is %q, want %q", values, got, bundle)
		}
	}
}

// bundle is base64 of a text. The API server accepts it although it is not a certificate.
const bundle = "Y2VydGlmaWNhdGU="

// The administrator of one namespace can install the operator for it, once the definition and
// the roles exist.
func TestANamespaceAdministratorCanInstall(t *testing.T) {
	t.Parallel()
	c, helm, server := clusterWithServer(t)
	createNamespace(t, c, release.Namespace)
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
	_, err = helm.Install(load(t, currentChart), values)
	must(t, err)
	_, err = helm.Upgrade(load(t, currentChart), values)
	must(t, err)
	getObject(t, c, "apps/v1", "Deployment", release.Namespace, "relaypool-operator")
	// With roles, the API server reports the missing permissions.
	if _, err := helm.Upgrade(load(t, currentChart), parsed(t, "namespaces: [relaypool-system]\ncrds: {upgrade: false}")); !apierrors.IsForbidden(err) && (err == nil || !strings.Contains(err.Error(), "forbidden")) {
		t.Errorf("create roles without the permission: got error %v, want forbidden", err)
	}
}

// kubeconfig writes a kubeconfig with a user's credentials, and returns its path.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file))
	return file
}

// An API server accepts every object of the golden files: no unknown field, no wrong type, no
// name that is too long.
func TestTheAPIServerAcceptsEveryGoldenObject(t *testing.T) {
	t.Parallel()
	c, helm := cluster(t)
	// Create the definition, and the namespaces that the golden files name.
	_, err := helm.Install(load(t, currentChart), parsed(t, "{}"))
	must(t, err)
	for _, name := range []string{"team-a", "team-b", "infra"} {
		createNamespace(t, c, name)
	}
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		must(t, c.Create(t.Context(), apiservertest.ForeignCRD(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind}, strings.ToLower(kind)+"s")))
	}
	files, err := filepath.Glob("../testdata/*.golden.yaml")
	must(t, err)
	if len(files) < 12 {
		t.Fatalf("%d golden files were found, want at least 12", len(files))
	}
	// Helm uses this process's name as its field manager. The test uses the same name, so that
	// fields which Helm has set and a golden file lacks are removed, as in an upgrade.
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

// eventually repeats a call until the API server serves the kind's definition.
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
