package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/hack/chart/release"
	"github.com/relaypool/relaypool/relay/contract"
)

// kustomized returns the objects that kubectl apply -k would apply for these folders of
// config with these components.
func kustomized(t *testing.T, resources, components []string) []*unstructured.Unstructured {
	t.Helper()
	memory := filesys.MakeFsInMemory()
	must(t, filepath.WalkDir(root+"/config", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		must(t, err)
		return memory.WriteFile(strings.TrimPrefix(path, root), content)
	}))
	in := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
	for key, names := range map[string][]string{"resources": resources, "components": components} {
		var paths []string
		for _, name := range names {
			paths = append(paths, "../config/"+name)
		}
		in[key] = paths
	}
	text, err := yaml.Marshal(in)
	must(t, err)
	must(t, memory.WriteFile("/overlay/kustomization.yaml", text))
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/overlay")
	must(t, err)
	text, err = all.AsYaml()
	must(t, err)
	objects, err := release.Objects(text)
	must(t, err)
	return objects
}

// byName returns objects by kind, namespace and name, without the parts that only the chart
// or only config can have.
func byName(objects []*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for _, u := range objects {
		switch u.GetKind() {
		case "Namespace": // helm install --create-namespace
			continue
		case "CustomResourceDefinition": // crds/ has no templates
			continue
		}
		if u.GetAnnotations()["helm.sh/hook"] == "test" { // helm test
			continue
		}
		if u.GetKind() == "ClusterRole" && u.GetLabels() == nil { // controller-gen writes no labels
			u.SetLabels(map[string]string{"app.kubernetes.io/name": "relaypool-operator"})
		}
		if u.GetKind() == "Deployment" { // the chart writes the API server's default
			strategy, _, _ := unstructured.NestedMap(u.Object, "spec", "strategy")
			if cmp.Equal(strategy, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}}) {
				unstructured.RemoveNestedField(u.Object, "spec", "strategy")
			}
		}
		out[fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())] = withoutHelmsLabels(u.Object)
	}
	return out
}

// withoutHelmsLabels removes all labels that name the release of an object, and converts
// numbers to one form.
func withoutHelmsLabels(in any) any {
	switch v := in.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			switch key {
			case "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by", "helm.sh/chart":
				continue
			}
			out[key] = withoutHelmsLabels(value)
		}
		if labels, ok := out["labels"].(map[string]any); ok && len(labels) == 0 {
			delete(out, "labels")
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutHelmsLabels(v[i])
		}
		// The order of a list of named items, such as variables and ports, means nothing.
		slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
		return out
	case float64:
		return int64(v)
	default:
		return v
	}
}

func nameOf(in any) string {
	object, _ := in.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

func TestConfigInstallsTheSameAsTheChart(t *testing.T) {
	t.Parallel()
	type install struct {
		values                string
		resources, components []string
	}
	tests := map[string]install{
		"the operator": {resources: []string{"default"}, components: []string{"cluster-wide"}},
		"with monitoring": {
			values:    "monitoring: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}}",
			resources: []string{"default", "prometheus"}, components: []string{"cluster-wide"},
		},
		"with external metrics": {
			values:    "externalMetrics: {enabled: true}",
			resources: []string{"default"}, components: []string{"cluster-wide", "external-metrics"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, _ := rendered(t, renderCase{values: tc.values})
			got, want := byName(objects), byName(kustomized(t, tc.resources, tc.components))
			if len(want) < 10 {
				t.Errorf("config has %d objects, want at least 10", len(want))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-config +chart):\n%s", diff)
			}
		})
	}
}

func TestChartDefinitionMatchesConfig(t *testing.T) {
	t.Parallel()
	read := func(path string) *apiextensionsv1.CustomResourceDefinition {
		content, err := os.ReadFile(path)
		must(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		must(t, yaml.UnmarshalStrict(content, &crd))
		return &crd
	}
	const file = "relaypool.dev_relaypools.yaml"
	got, want := read(filepath.Join(chartPath, "crds", file)), read(filepath.Join(root, "config/crd", file))
	if got.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("uninstalling the chart would delete the definition: want the annotation helm.sh/resource-policy: keep")
	}
	for key := range got.Annotations {
		if _, inConfig := want.Annotations[key]; !inConfig {
			delete(got.Annotations, key)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definition (-config +chart):\n%s", diff)
	}
}

// permissions returns all permissions of the rules, each as "verb group/resource".
func permissions(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					out = append(out, verb+" "+group+"/"+resource)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// markerPermissions returns the permissions in the kubebuilder markers of the reconciler.
func markerPermissions(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(root + "/controllers/internal/pool/rbac.go")
	must(t, err)
	var rules []rbacv1.PolicyRule
	for _, m := range regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:groups=([^,]*),resources=([^,]*),verbs=(\S+)$`).FindAllStringSubmatch(string(content), -1) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: strings.Split(strings.Trim(m[1], `"`), ";"), Resources: strings.Split(m[2], ";"), Verbs: strings.Split(m[3], ";"),
		})
	}
	if len(rules) < 5 {
		t.Fatalf("%d markers were found, want at least 5", len(rules))
	}
	return permissions(rules)
}

// The operator has the same permissions however it is installed, and no more than its code
// declares.
func TestOperatorRoleMatchesConfigAndMarkers(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(root + "/config/rbac/role.yaml")
	must(t, err)
	var config rbacv1.ClusterRole
	must(t, yaml.UnmarshalStrict(content, &config))
	for name, s := range map[string]renderCase{"the whole cluster": {}, "some namespaces": {values: "namespaces: [team-a]"}} {
		objects, _ := rendered(t, s)
		role := pick[rbacv1.ClusterRole](t, objects, "ClusterRole", "relaypool-operator")
		if diff := cmp.Diff(config.Rules, role.Rules); diff != "" {
			t.Errorf("%s: run make chart (-config/rbac/role.yaml +chart):\n%s", name, diff)
		}
		if diff := cmp.Diff(markerPermissions(t), permissions(role.Rules)); diff != "" {
			t.Errorf("%s (-markers +chart):\n%s", name, diff)
		}
	}
}

// grants returns the roles that bindings give a service account: for the cluster, and for
// each namespace.
func grants(objects []*unstructured.Unstructured, account string) (cluster []string, namespaced map[string][]string) {
	namespaced = map[string][]string{}
	for _, u := range objects {
		if !strings.HasSuffix(u.GetKind(), "RoleBinding") {
			continue
		}
		subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
		role, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
		for _, s := range subjects {
			if s.(map[string]any)["name"] != account {
				continue
			}
			if u.GetKind() == "ClusterRoleBinding" {
				cluster = append(cluster, role)
			} else {
				namespaced[u.GetNamespace()] = append(namespaced[u.GetNamespace()], role)
			}
		}
	}
	slices.Sort(cluster)
	for _, roles := range namespaced {
		slices.Sort(roles)
	}
	return cluster, namespaced
}

// With namespaces, the operator has only those cluster-wide permissions that cannot be
// granted in a namespace.
func TestNamespacesLimitTheOperatorsRoles(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		values         string
		wantCluster    []string
		wantNamespaced map[string][]string
	}{
		"the whole cluster": {
			values:         "{}",
			wantCluster:    []string{"relaypool-operator", "relaypool-operator-metrics-auth"},
			wantNamespaced: map[string][]string{"relaypool-system": {"relaypool-operator-leader-election"}},
		},
		"two namespaces": {
			values:         "namespaces: [team-a, team-b]",
			wantCluster:    []string{"relaypool-operator-metrics-auth"},
			wantNamespaced: map[string][]string{"relaypool-system": {"relaypool-operator-leader-election"}, "team-a": {"relaypool-operator"}, "team-b": {"relaypool-operator"}},
		},
		"without metrics": {
			values:         "namespaces: [team-a]\noperator: {metrics: {enabled: false}}",
			wantNamespaced: map[string][]string{"relaypool-system": {"relaypool-operator-leader-election"}, "team-a": {"relaypool-operator"}},
		},
		"with external metrics": {
			values:      "namespaces: [team-a]\nexternalMetrics: {enabled: true}",
			wantCluster: []string{"relaypool-operator-external-metrics", "relaypool-operator-metrics-auth", "system:auth-delegator"},
			wantNamespaced: map[string][]string{
				"relaypool-system": {"relaypool-operator-external-metrics", "relaypool-operator-leader-election"},
				"kube-system":      {"extension-apiserver-authentication-reader"}, "team-a": {"relaypool-operator"},
			},
		},
		"without roles": {values: "rbac: {create: false}", wantNamespaced: map[string][]string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, _ := rendered(t, renderCase{values: tc.values})
			cluster, namespaced := grants(objects, "relaypool-operator")
			if diff := cmp.Diff(tc.wantCluster, cluster); diff != "" {
				t.Errorf("cluster-wide roles (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantNamespaced, namespaced); diff != "" {
				t.Errorf("roles in namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

// No role in the chart can delete a key, list or watch keys, or extend its own permissions.
func TestNoRoleGrantsDangerousPermissions(t *testing.T) {
	t.Parallel()
	for name, s := range renderCases() {
		objects, _ := rendered(t, s)
		for _, u := range objects {
			if u.GetKind() == "Secret" {
				t.Errorf("%s: the Secret %s is in the chart", name, u.GetName())
			}
			if !strings.HasSuffix(u.GetKind(), "Role") {
				continue
			}
			role := pick[rbacv1.ClusterRole](t, objects, u.GetKind(), u.GetName())
			for _, p := range permissions(role.Rules) {
				verb, what, _ := strings.Cut(p, " ")
				if strings.Contains(p, "*") || slices.Contains([]string{"impersonate", "escalate", "bind", "deletecollection"}, verb) {
					t.Errorf("%s: the role %s grants %q", name, u.GetName(), p)
				}
				if what == "/secrets" && !slices.Contains([]string{"create", "get", "patch"}, verb) {
					t.Errorf("%s: the role %s grants %q", name, u.GetName(), p)
				}
			}
		}
	}
}

// The chart uses the names, ports and version of package contract.
func TestTheChartUsesTheNamesOfTheContract(t *testing.T) {
	t.Parallel()
	objects, _ := rendered(t, renderCase{values: everything})
	d := deployment(t, objects)
	c := d.Spec.Template.Spec.Containers[0]
	for _, e := range c.Env {
		if strings.HasPrefix(e.Name, contract.VariablePrefix) && !slices.Contains(contract.OperatorEnvironmentVariables(), e.Name) {
			t.Errorf("the operator reads no environment variable %s", e.Name)
		}
	}
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	want := map[string]int32{"metrics": contract.OperatorMetricsPort, "health": contract.OperatorHealthPort, "ext-metrics": contract.OperatorExternalMetricsPort}
	if diff := cmp.Diff(want, ports); diff != "" {
		t.Errorf("ports (-contract +chart):\n%s", diff)
	}
	if c.LivenessProbe.HTTPGet.Path != contract.LivenessPath || c.ReadinessProbe.HTTPGet.Path != contract.ReadinessPath {
		t.Errorf("probes at %s and %s, want %s and %s", c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path, contract.LivenessPath, contract.ReadinessPath)
	}
	metadata := loaded(t).Metadata
	if metadata.Version != contract.Version || metadata.AppVersion != contract.Version {
		t.Errorf("the chart has version %s and app version %s, want %s for both", metadata.Version, metadata.AppVersion, contract.Version)
	}
	found := map[string]bool{}
	for _, u := range objects {
		found[u.GetKind()+" "+u.GetName()] = true
	}
	for _, name := range []string{
		"APIService " + contract.ExternalMetricsAPIService,
		"Service " + contract.OperatorExternalMetrics,
	} {
		if !found[name] {
			t.Errorf("the chart has no %s, only %v", name, slices.Sorted(maps.Keys(found)))
		}
	}
	if release.Namespace != contract.OperatorSystemNamespace {
		t.Errorf("tests install in %s, want %s", release.Namespace, contract.OperatorSystemNamespace)
	}
}
