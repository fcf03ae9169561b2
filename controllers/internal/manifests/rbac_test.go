package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// permissions are "verb group/resource", of all rules together.
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

// markerPermissions returns the permissions of the markers next to the reconciler.
func markerPermissions(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("../pool/rbac.go")
	must(t, err)
	markers := regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:groups=([^,]*),resources=([^,]*),verbs=(\S+)$`).FindAllStringSubmatch(string(content), -1)
	if len(markers) != strings.Count(string(content), "+kubebuilder:rbac") {
		t.Fatalf("%d of %d markers could be read, want all", len(markers), strings.Count(string(content), "+kubebuilder:rbac"))
	}
	var rules []rbacv1.PolicyRule
	for _, m := range markers {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: strings.Split(strings.Trim(m[1], `"`), ";"), Resources: strings.Split(m[2], ";"), Verbs: strings.Split(m[3], ";"),
		})
	}
	return permissions(rules)
}

func operatorRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	objects, _ := resources(t, filepath.Join(config, "rbac"))
	return pick[rbacv1.ClusterRole](t, objects, "ClusterRole", "relaypool-operator")
}

func TestTheRoleMatchesTheMarkers(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(markerPermissions(t), permissions(operatorRole(t).Rules)); diff != "" {
		t.Errorf("run go generate ./config/rbac (-markers +config/rbac/role.yaml):\n%s", diff)
	}
}

// Only config/cluster-wide gives rights to a whole cluster. No other base includes it.
func TestOnlyClusterWideBindsTheWholeCluster(t *testing.T) {
	t.Parallel()
	bound := func(base string) (kinds []string) {
		objects, _ := resources(t, filepath.Join(config, base))
		for _, u := range objects {
			if strings.HasSuffix(u.GetKind(), "RoleBinding") && pick[rbacv1.RoleBinding](t, objects, u.GetKind(), u.GetName()).RoleRef.Name == "relaypool-operator" {
				kinds = append(kinds, u.GetKind())
			}
		}
		return kinds
	}
	for base, want := range map[string][]string{"default": nil, "external-metrics": nil, "prometheus": nil, "cluster-wide": {"ClusterRoleBinding"}} {
		if diff := cmp.Diff(want, bound(base)); diff != "" {
			t.Errorf("config/%s binds the operator's role by (-want +got):\n%s", base, diff)
		}
	}
}

func TestNoRoleHasWildcards(t *testing.T) {
	t.Parallel()
	objects, _ := resources(t, filepath.Join(config, "default"))
	roles := 0
	for _, u := range objects {
		if !strings.HasSuffix(u.GetKind(), "Role") {
			continue
		}
		roles++
		role := pick[rbacv1.ClusterRole](t, objects, u.GetKind(), u.GetName())
		for _, p := range permissions(role.Rules) {
			verb, what, _ := strings.Cut(p, " ")
			if strings.Contains(p, "*") {
				t.Errorf("%s gives %s, want no wildcard", u.GetName(), p)
			}
			if what == "/secrets" && !slices.Contains([]string{"create", "get", "patch"}, verb) {
				t.Errorf("%s gives %s: a key could be deleted, or read by a list", u.GetName(), p)
			}
			if slices.Contains([]string{"impersonate", "escalate", "bind", "deletecollection"}, verb) {
				t.Errorf("%s gives %s, which the operator must not have", u.GetName(), p)
			}
		}
	}
	if roles < 5 {
		t.Errorf("%d roles were checked, want at least 5", roles)
	}
}
