package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/relaypool/relaypool/relay/contract"
)

func TestOperatorDeploymentMatchesTheContract(t *testing.T) {
	t.Parallel()
	objects, _ := resources(t, filepath.Join(config, "default"))
	d := pick[appsv1.Deployment](t, objects, "Deployment", "relaypool-operator")
	c := d.Spec.Template.Spec.Containers[0]
	for _, e := range c.Env {
		if !slices.Contains(contract.OperatorEnvironmentVariables(), e.Name) {
			t.Errorf("%s is no variable of the operator", e.Name)
		}
	}
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if diff := cmp.Diff(map[string]int32{"metrics": contract.OperatorMetricsPort, "health": contract.OperatorHealthPort}, ports); diff != "" {
		t.Errorf("ports (-contract +config):\n%s", diff)
	}
	if got := c.LivenessProbe.HTTPGet.Path; got != contract.LivenessPath {
		t.Errorf("liveness at %s, want %s", got, contract.LivenessPath)
	}
	if got := c.ReadinessProbe.HTTPGet.Path; got != contract.ReadinessPath {
		t.Errorf("readiness at %s, want %s", got, contract.ReadinessPath)
	}
	s := pick[corev1.Service](t, objects, "Service", "relaypool-operator-metrics")
	if diff := cmp.Diff(d.Spec.Template.Labels, s.Spec.Selector); diff != "" || s.Spec.Ports[0].Port != contract.OperatorMetricsPort {
		t.Errorf("the Service selects other pods, or another port: %s", diff)
	}
	n := pick[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "relaypool-operator")
	if diff := cmp.Diff(d.Spec.Template.Labels, n.Spec.PodSelector.MatchLabels); diff != "" || n.Spec.Ingress[0].Ports[0].Port.IntValue() != contract.OperatorMetricsPort {
		t.Errorf("the NetworkPolicy selects other pods, or another port: %s", diff)
	}
	if d.Namespace != contract.OperatorSystemNamespace {
		t.Errorf("the operator is installed in %s, want %s", d.Namespace, contract.OperatorSystemNamespace)
	}
	for _, u := range objects {
		if ns := u.GetNamespace(); ns != "" && ns != contract.OperatorSystemNamespace {
			t.Errorf("%s %s is in namespace %s, want %s", u.GetKind(), u.GetName(), ns, contract.OperatorSystemNamespace)
		}
	}
	lease := pick[rbacv1.Role](t, objects, "Role", "relaypool-operator-leader-election")
	if got := lease.Rules[1].ResourceNames; !slices.Equal(got, []string{contract.OperatorLease}) {
		t.Errorf("the Role permits the Leases %v, want %s", got, contract.OperatorLease)
	}
}

func TestAlertsAndScrapesUseExistingMetrics(t *testing.T) {
	t.Parallel()
	known := map[string]contract.Metric{}
	for _, m := range contract.OperatorMetrics() {
		known[m.Name] = m
	}
	content, err := os.ReadFile(filepath.Join(config, "prometheus", "rules.yaml"))
	must(t, err)
	expressions := regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(string(content), -1)
	if len(expressions) == 0 {
		t.Fatal("no alert")
	}
	for _, e := range expressions {
		found := regexp.MustCompile(`(relaypool_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(e[1], -1)
		if len(found) == 0 {
			t.Errorf("%s uses no metric of the operator", e[1])
		}
		for _, f := range found {
			m, ok := known[f[1]]
			if !ok {
				t.Errorf("%s uses %s, which the operator does not have", e[1], f[1])
			}
			for _, label := range regexp.MustCompile(`(\w+)[=!]`).FindAllStringSubmatch(f[2], -1) {
				if !slices.Contains(m.Labels, label[1]) {
					t.Errorf("%s: %s has no label %s", e[1], f[1], label[1])
				}
			}
		}
	}
	objects, _ := resources(t, filepath.Join(config, "prometheus"))
	for _, u := range objects {
		if u.GetNamespace() != contract.OperatorSystemNamespace || !strings.HasPrefix(u.GetAPIVersion(), "monitoring.coreos.com/") {
			t.Errorf("%s %s is in namespace %s and of %s, want the operator's namespace and monitoring.coreos.com", u.GetKind(), u.GetName(), u.GetNamespace(), u.GetAPIVersion())
		}
	}
}
