package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	lua "github.com/yuin/gopher-lua"
	"helm.sh/helm/v4/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/chart/release"
	"github.com/relaypool/relaypool/relay/contract"
)

const gitops = root + "/config/gitops"

// fleetState is a RelayPool, and its health: in Argo CD by the script in config/gitops, and for
// Flux by kstatus.
type fleetState struct {
	paused bool
	// behind makes the status one generation old.
	behind, withoutStatus bool
	// conditions are "Type Status Reason" each.
	conditions  []string
	argo        string
	argoMessage string
	flux        status.Status
}

func fleetStates() map[string]fleetState {
	const ready, available = "Ready True Ready", "Available True Available"
	return map[string]fleetState{
		// kstatus takes what has no observedGeneration for finished, so the definition has a default.
		"the operator has not reported yet": {withoutStatus: true, argo: "Progressing", argoMessage: "has not seen", flux: status.InProgressStatus},
		"the status is of the spec before":  {behind: true, conditions: []string{available, ready}, argo: "Progressing", argoMessage: "has not seen", flux: status.InProgressStatus},
		"a stall of the spec before":        {behind: true, conditions: []string{"Ready False InvalidSpec", "Stalled True InvalidSpec"}, argo: "Progressing", argoMessage: "has not seen", flux: status.InProgressStatus},
		"the first reading is under way":    {conditions: []string{"Accepted True Valid", "Ready Unknown NotChecked"}, argo: "Progressing", argoMessage: "about Ready", flux: status.InProgressStatus},
		"no endpoint answers":               {conditions: []string{available, "PoolInitialised Unknown ChainUnavailable", "Ready Unknown ChainUnavailable"}, argo: "Progressing", argoMessage: "about Ready", flux: status.InProgressStatus},
		"the fleet serves":                  {conditions: []string{available, ready}, argo: "Healthy", argoMessage: "about Ready", flux: status.CurrentStatus},
		"the fleet serves without caps":     {conditions: []string{"SpendingCapped False NoSpendCap", available, ready}, argo: "Healthy", argoMessage: "about Ready", flux: status.CurrentStatus},
		"pods are replaced while others serve": {
			conditions: []string{"Available True RollingOut", ready, "Reconciling True Progressing"}, argo: "Progressing", argoMessage: "about Reconciling", flux: status.InProgressStatus,
		},
		"keys are rotated":                 {conditions: []string{available, ready, "Reconciling True Rotating"}, argo: "Progressing", argoMessage: "about Reconciling", flux: status.InProgressStatus},
		"the first pods start":             {conditions: []string{"Available False PodsNotReady", "Ready False PodsNotReady", "Reconciling True Progressing"}, argo: "Progressing", argoMessage: "about Reconciling", flux: status.InProgressStatus},
		"the rollout makes no progress":    {conditions: []string{"Available False PodsNotReady", "Ready False PodsNotReady"}, argo: "Degraded", argoMessage: "about Ready", flux: status.InProgressStatus},
		"a Secret is missing":              {conditions: []string{"SecretsResolved False SecretNotFound", "Ready False SecretNotFound"}, argo: "Degraded", argoMessage: "about Ready", flux: status.InProgressStatus},
		"payers need funds":                {conditions: []string{"FeePayersFunded False Underfunded", available, "Ready False Underfunded"}, argo: "Degraded", argoMessage: "about Ready", flux: status.InProgressStatus},
		"the spec is invalid":              {conditions: []string{"Accepted False InvalidSpec", "Ready False InvalidSpec", "Stalled True InvalidSpec"}, argo: "Degraded", argoMessage: "about Stalled", flux: status.FailedStatus},
		"the spec is invalid, and paused":  {paused: true, conditions: []string{"Accepted False InvalidSpec", "Ready False InvalidSpec", "Stalled True InvalidSpec"}, argo: "Degraded", argoMessage: "about Stalled", flux: status.FailedStatus},
		"a rotation failed beside a fleet": {conditions: []string{available, "Ready False RotationFailed", "Stalled True RotationFailed"}, argo: "Degraded", argoMessage: "about Stalled", flux: status.FailedStatus},
		"the fleet serves, and is paused":  {paused: true, conditions: []string{available, "Ready True Paused"}, argo: "Suspended", argoMessage: "spec.paused is true: about Ready", flux: status.CurrentStatus},
		"a fleet without pods is paused":   {paused: true, conditions: []string{"Available False NotDeployed", "Ready False NotDeployed"}, argo: "Suspended", argoMessage: "spec.paused is true: about Ready", flux: status.InProgressStatus},
		"paused is not reported yet":       {paused: true, behind: true, conditions: []string{available, ready}, argo: "Progressing", argoMessage: "has not seen", flux: status.InProgressStatus},
		"the fleet is scaled to zero":      {conditions: []string{"Available False ScaledToZero", "Ready False ScaledToZero"}, argo: "Suspended", argoMessage: "about Ready", flux: status.InProgressStatus},
		"a status without conditions":      {argo: "Progressing", argoMessage: "has not reported", flux: status.CurrentStatus},
	}
}

func TestArgoCDAndFluxReadTheHealthOfAFleet(t *testing.T) {
	t.Parallel()
	script := healthScript(t)
	for name, tc := range fleetStates() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := tc.relayPool(t)
			health, message := argoHealth(t, script, content)
			if health != tc.argo || !strings.Contains(message, tc.argoMessage) {
				t.Errorf("Argo CD: got %s with message %q, want %s with %q", health, message, tc.argo, tc.argoMessage)
			}
			got, err := status.Compute(&unstructured.Unstructured{Object: content})
			must(t, err)
			if got.Status != tc.flux {
				t.Errorf("kstatus: got %s (%s), want %s", got.Status, got.Message, tc.flux)
			}
		})
	}
}

// relayPool returns the RelayPool as the API server has it.
func (s fleetState) relayPool(t *testing.T) map[string]any {
	t.Helper()
	pool := &v1alpha1.RelayPool{}
	pool.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))
	pool.Name, pool.Namespace, pool.Generation = "shield", "shield", 3
	pool.Spec.Paused = s.paused
	pool.Status.ObservedGeneration = 3
	if s.behind {
		pool.Status.ObservedGeneration = 2
	}
	for _, c := range s.conditions {
		parts := strings.Fields(c)
		pool.Status.Conditions = append(pool.Status.Conditions, metav1.Condition{
			Type: parts[0], Status: metav1.ConditionStatus(parts[1]), Reason: parts[2],
			Message: "about " + parts[0], ObservedGeneration: pool.Status.ObservedGeneration,
		})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pool)
	must(t, err)
	if s.withoutStatus {
		content["status"] = map[string]any{"observedGeneration": int64(-1)}
	}
	return content
}

// healthScript returns the script from the patch of Argo CD's ConfigMap.
func healthScript(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(gitops + "/argocd/argocd-cm.yaml")
	must(t, err)
	var patch corev1.ConfigMap
	must(t, yaml.UnmarshalStrict(content, &patch))
	key := "resource.customizations.health." + v1alpha1.SchemeGroupVersion.Group + "_" + v1alpha1.Kind
	if patch.Name != "argocd-cm" || patch.Data[key] == "" || len(patch.Data) != 1 {
		t.Fatalf("got the ConfigMap %s with %d keys, want argocd-cm with %s alone", patch.Name, len(patch.Data), key)
	}
	return patch.Data[key]
}

// argoHealth runs a health script as Argo CD does, with the libraries that Argo CD opens: the
// script has no library for strings.
func argoHealth(t *testing.T, script string, content map[string]any) (health, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		must(t, l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	l.SetGlobal("obj", luaValue(l, content))
	must(t, l.DoString(script))
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returned a %s, want a table", l.Get(-1).Type())
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

// luaValue converts a value of an object to Lua.
func luaValue(l *lua.LState, in any) lua.LValue {
	switch v := in.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, value := range v {
			table.RawSetString(key, luaValue(l, value))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, value := range v {
			table.Append(luaValue(l, value))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

// gitopsObjects returns the objects of a file of config/gitops, by kind and name.
func gitopsObjects(t *testing.T, file string) map[string]*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(gitops, file))
	must(t, err)
	objects, err := release.Objects(content)
	must(t, err)
	out := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		out[o.GetKind()+" "+o.GetName()] = o
	}
	return out
}

// strict decodes an object into its type, and refuses unknown fields.
func strict[T any](t *testing.T, u *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if u == nil {
		t.Fatalf("the file has no %T", out)
	}
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, out, true))
	return out
}

// checkExample renders the chart with the values of an example.
func checkExample(t *testing.T, version string, values map[string]any) {
	t.Helper()
	if version != contract.Version {
		t.Errorf("the example installs version %s, want %s", version, contract.Version)
	}
	_, _, err := release.Render(loaded(t), values, release.Options{})
	must(t, err)
}

// repository is where the release publishes the chart.
const repository = "ghcr.io/relaypool/charts"

func TestTheApplicationInstallsTheChart(t *testing.T) {
	t.Parallel()
	objects := gitopsObjects(t, "argocd/application.yaml")
	if len(objects) != 2 {
		t.Errorf("got %d objects, want two Applications", len(objects))
	}
	operator := strict[struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ObjectMeta `json:"metadata"`
		Spec       struct {
			Project string `json:"project"`
			Source  struct {
				RepoURL        string `json:"repoURL"`
				Chart          string `json:"chart"`
				TargetRevision string `json:"targetRevision"`
				Helm           struct {
					ValuesObject map[string]any `json:"valuesObject"`
				} `json:"helm"`
			} `json:"source"`
			Destination struct {
				Server    string `json:"server"`
				Namespace string `json:"namespace"`
			} `json:"destination"`
			SyncPolicy struct {
				Automated   map[string]any `json:"automated"`
				SyncOptions []string       `json:"syncOptions"`
			} `json:"syncPolicy"`
		} `json:"spec"`
	}](t, objects["Application relaypool"])
	source := operator.Spec.Source
	if source.RepoURL != repository || source.Chart != loaded(t).Name() || operator.Spec.Destination.Namespace != release.Namespace {
		t.Errorf("got %s of %s into %s, want %s of %s into %s", source.Chart, source.RepoURL, operator.Spec.Destination.Namespace, loaded(t).Name(), repository, release.Namespace)
	}
	checkExample(t, source.TargetRevision, source.Helm.ValuesObject)
}

func TestFluxInstallsTheChartAndWaitsForTheFleet(t *testing.T) {
	t.Parallel()
	operator, fleets := gitopsObjects(t, "flux/operator.yaml"), gitopsObjects(t, "flux/fleets.yaml")
	source := strict[sourcev1.OCIRepository](t, operator["OCIRepository relaypool"])
	if want := "oci://" + repository + "/" + loaded(t).Name(); source.Spec.URL != want {
		t.Errorf("the chart is at %s, want %s", source.Spec.URL, want)
	}
	if got := source.Spec.LayerSelector.MediaType; got != registry.ChartLayerMediaType {
		t.Errorf("the layer has media type %s, want %s", got, registry.ChartLayerMediaType)
	}
	installed := strict[helmv2.HelmRelease](t, operator["HelmRelease relaypool"])
	if ref := installed.Spec.ChartRef; ref.Kind != source.Kind || ref.Name != source.Name || installed.Spec.TargetNamespace != release.Namespace {
		t.Errorf("the HelmRelease has the chart of %s %s for %s, want that of its OCIRepository for %s", ref.Kind, ref.Name, installed.Spec.TargetNamespace, release.Namespace)
	}
	values := map[string]any{}
	must(t, json.Unmarshal(installed.Spec.Values.Raw, &values))
	checkExample(t, source.Spec.Reference.Tag, values)

	repo := strict[sourcev1.GitRepository](t, fleets["GitRepository fleets"])
	fleet := strict[kustomizev1.Kustomization](t, fleets["Kustomization shield"])
	if ref := fleet.Spec.SourceRef; ref.Kind != repo.Kind || ref.Name != repo.Name {
		t.Errorf("the Kustomization reads %s %s, want its GitRepository", ref.Kind, ref.Name)
	}
	checks := fleet.Spec.HealthChecks
	if len(checks) != 1 || checks[0].APIVersion != v1alpha1.SchemeGroupVersion.String() || checks[0].Kind != v1alpha1.Kind {
		t.Errorf("got health checks %v, want one of a RelayPool", checks)
	}
}
