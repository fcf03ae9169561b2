package release_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/chart/release"
)

// kyvernoPolicies returns Kyverno's policies for the Pod Security Standards baseline and
// restricted, from Kyverno's own chart, by name.
func kyvernoPolicies(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-modfile=../../tools/kyverno-policies/go.mod", "-json", "github.com/kyverno/kyverno")
	output, err := download.Output()
	if err != nil {
		t.Fatalf("download Kyverno's charts: %v\n%s", err, output)
	}
	var module struct{ Dir string }
	must(t, json.Unmarshal(output, &module))
	values := map[string]any{"podSecurityStandard": "restricted", "validationFailureAction": "Enforce"}
	objects, _, err := release.Render(load(t, filepath.Join(module.Dir, "charts", "kyverno-policies")), values, release.Options{})
	must(t, err)
	out := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		if o.GetKind() != "ValidatingPolicy" {
			t.Errorf("Kyverno's chart has a %s, want only ValidatingPolicies", o.GetKind())
		}
		out[o.GetName()] = o
	}
	return out
}

// enforce has the API server itself enforce a policy of Kyverno, in the namespace all and in one
// with the policy's name. Except for Kyverno's own fields, it is a ValidatingAdmissionPolicy.
func enforce(t *testing.T, c client.Client, policy *unstructured.Unstructured) {
	t.Helper()
	content := policy.DeepCopy()
	unstructured.RemoveNestedField(content.Object, "spec", "validationActions")
	unstructured.RemoveNestedField(content.Object, "spec", "evaluation")
	var enforced admissionv1.ValidatingAdmissionPolicy
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content.Object, &enforced, true))
	enforced.TypeMeta, enforced.ObjectMeta = metav1.TypeMeta{}, metav1.ObjectMeta{Name: policy.GetName()}
	must(t, c.Create(t.Context(), &enforced))
	createNamespace(t, c, policy.GetName())
	must(t, c.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.GetName()},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.GetName(), ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{"all", policy.GetName()}},
			}}},
		},
	}))
}

// violations makes a restricted pod violate each policy of Kyverno.
func violations() map[string]func(*corev1.Pod) {
	user := func(s *corev1.PodSpec) *corev1.SecurityContext { return s.Containers[0].SecurityContext }
	hostPath := corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}
	return map[string]func(*corev1.Pod){
		"disallow-capabilities":        func(p *corev1.Pod) { user(&p.Spec).Capabilities.Add = []corev1.Capability{"SYS_ADMIN"} },
		"disallow-capabilities-strict": func(p *corev1.Pod) { user(&p.Spec).Capabilities.Drop = []corev1.Capability{"NET_RAW"} },
		"disallow-host-namespaces":     func(p *corev1.Pod) { p.Spec.HostPID = true },
		"disallow-host-path":           func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{hostPath} },
		"disallow-host-ports": func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		},
		"disallow-host-process": func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
		},
		"disallow-privilege-escalation": func(p *corev1.Pod) { user(&p.Spec).AllowPrivilegeEscalation = new(true) },
		"disallow-privileged-containers": func(p *corev1.Pod) {
			user(&p.Spec).AllowPrivilegeEscalation, user(&p.Spec).Privileged = nil, new(true)
		},
		"disallow-proc-mount": func(p *corev1.Pod) {
			p.Spec.HostUsers, user(&p.Spec).ProcMount = new(false), new(corev1.UnmaskedProcMount)
		},
		"disallow-selinux": func(p *corev1.Pod) { user(&p.Spec).SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"} },
		"restrict-apparmor-profiles": func(p *corev1.Pod) {
			p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/" + p.Spec.Containers[0].Name: "unconfined"}
		},
		"restrict-seccomp": func(p *corev1.Pod) {
			p.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		},
		"restrict-seccomp-strict": func(p *corev1.Pod) { p.Spec.SecurityContext.SeccompProfile = nil },
		"restrict-sysctls": func(p *corev1.Pod) {
			p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}
		},
		"restrict-volume-types":        func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{hostPath} },
		"require-run-as-non-root-user": func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = new(int64) },
		"require-run-as-nonroot":       func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = new(false) },
	}
}

// pods returns the pods of a golden file, and those of its Deployments and Jobs. They name no
// priority class, which the API server would look for.
func pods(t *testing.T, file string) []*corev1.Pod {
	t.Helper()
	var out []*corev1.Pod
	for _, u := range objects(t, file) {
		content := u.Object
		switch u.GetKind() {
		case "Deployment", "Job":
			content, _, _ = unstructured.NestedMap(u.Object, "spec", "template")
		case "Pod":
		default:
			continue
		}
		pod := &corev1.Pod{}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, pod, true))
		pod.Name, pod.Namespace = u.GetName(), "all"
		pod.Spec.PriorityClassName = ""
		out = append(out, pod)
	}
	return out
}

// Kyverno refuses no pod: not of the operator, not of helm test, and not of a fleet.
func TestKyvernosPoliciesAcceptEveryPod(t *testing.T) {
	t.Parallel()
	c, _ := cluster(t)
	createNamespace(t, c, "all")
	policies := kyvernoPolicies(t)
	for _, policy := range policies {
		enforce(t, c, policy)
	}
	var all []*corev1.Pod
	for _, pattern := range []string{"../testdata/*.golden.yaml", "../../../controllers/internal/build/testdata/*.golden.yaml"} {
		files, err := filepath.Glob(pattern)
		must(t, err)
		for _, file := range files {
			all = append(all, pods(t, file)...)
		}
	}
	if len(all) < 40 {
		t.Fatalf("the golden files have %d pods, want at least 40", len(all))
	}

	violate := violations()
	if want, got := slices.Sorted(maps.Keys(violate)), slices.Sorted(maps.Keys(policies)); !slices.Equal(want, got) {
		t.Fatalf("Kyverno's chart has the policies\n%v\nwant those of violations\n%v", got, want)
	}
	for name := range policies {
		bad := all[0].DeepCopy()
		bad.Namespace, bad.Spec.Volumes, bad.Spec.Containers[0].VolumeMounts = name, nil, nil
		violate[name](bad)
		// A policy holds some time after it is made.
		refusal := ""
		for deadline := time.Now().Add(time.Minute); !strings.Contains(refusal, "'"+name+"'") && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if err := c.Create(t.Context(), bad.DeepCopy(), client.DryRunAll); err != nil {
				refusal = err.Error()
			}
		}
		if !strings.Contains(refusal, "'"+name+"'") {
			t.Errorf("%s does not refuse a pod that violates it: error %q", name, refusal)
		}
	}
	for _, pod := range all {
		if err := c.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("pod of %s: %v", pod.Name, err)
		}
	}
}
