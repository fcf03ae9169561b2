package externalmetrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/relay/contract"
)

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

// patched returns the operator's Deployment with the component, as kustomize makes it.
func patched(t *testing.T) *appsv1.Deployment {
	t.Helper()
	asJSON := func(path ...string) []byte {
		content, err := os.ReadFile(filepath.Join(append([]string{config}, path...)...))
		must(t, err)
		out, err := yaml.YAMLToJSONStrict(content)
		must(t, err)
		return out
	}
	merged, err := strategicpatch.StrategicMergePatch(asJSON("manager", "deployment.yaml"), asJSON("external-metrics", "deployment.yaml"), appsv1.Deployment{})
	must(t, err)
	out := new(appsv1.Deployment)
	must(t, json.Unmarshal(merged, out))
	return out
}

func TestTheComponentServesTheMetrics(t *testing.T) {
	t.Parallel()
	objects := component(t, filepath.Join(config, "external-metrics"))
	d := patched(t)
	c := d.Spec.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, e := range c.Env {
		if !slices.Contains(contract.OperatorEnvironmentVariables(), e.Name) {
			t.Errorf("%s is no variable of the operator", e.Name)
		}
		env[e.Name] = e.Value
	}
	if env[contract.OperatorEnvExternalListen] != ":6443" || env[contract.OperatorEnvMetricsListen] == "" || *d.Spec.Replicas != 2 || len(d.Spec.Template.Spec.Containers) != 1 {
		t.Errorf("%d replicas of %d containers with the environment %v, want 2 replicas of one container that serves external metrics and metrics", *d.Spec.Replicas, len(d.Spec.Template.Spec.Containers), env)
	}
	service := pick[corev1.Service](t, objects, "Service", env[contract.OperatorEnvExternalService])
	if diff := cmp.Diff(d.Spec.Template.Labels, service.Spec.Selector); diff != "" {
		t.Errorf("the Service finds other pods: %s", diff)
	}
	port := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == service.Spec.Ports[0].TargetPort.String() })
	if port < 0 || c.Ports[port].ContainerPort != contract.OperatorExternalMetricsPort {
		t.Errorf("the Service leads to the port %s, want the port of external metrics among %v", service.Spec.Ports[0].TargetPort.String(), c.Ports)
	}
	var apiService *unstructured.Unstructured
	for _, u := range objects {
		if u.GetKind() == "APIService" {
			apiService = u
		}
	}
	name, _, _ := unstructured.NestedString(apiService.Object, "spec", "service", "name")
	namespace, _, _ := unstructured.NestedString(apiService.Object, "spec", "service", "namespace")
	number, _, _ := unstructured.NestedFieldNoCopy(apiService.Object, "spec", "service", "port")
	if apiService.GetName() != contract.ExternalMetricsAPIService || name != service.Name || namespace != service.Namespace || fmt.Sprint(number) != strconv.Itoa(int(service.Spec.Ports[0].Port)) {
		t.Errorf("the APIService %s leads to %s/%s:%v, want the port of the operator's Service", apiService.GetName(), namespace, name, number)
	}
	if _, has, _ := unstructured.NestedFieldNoCopy(apiService.Object, "spec", "caBundle"); has {
		t.Error("the APIService has a caBundle, which only the operator sets")
	}
	certificate := pick[rbacv1.Role](t, objects, "Role", contract.OperatorExternalMetrics)
	if diff := cmp.Diff([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{env[contract.OperatorEnvExternalSecret]}, Verbs: []string{"get", "patch"}},
	}, certificate.Rules); diff != "" {
		t.Errorf("rights to the certificate (-want +got):\n%s", diff)
	}
	reader := pick[rbacv1.ClusterRole](t, objects, "ClusterRole", contract.OperatorExternalMetrics+"-reader")
	if diff := cmp.Diff([]string{contract.MetricBacklog.Name, contract.MetricBacklogAge.Name}, reader.Rules[0].Resources); diff != "" {
		t.Errorf("readable metrics (-want +got):\n%s", diff)
	}
}
