package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// deployment returns the Deployment among rendered objects.
func deployment(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() == "Deployment" {
			return pick[appsv1.Deployment](t, objects, "Deployment", u.GetName())
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}

func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	must(t, err)
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, s := range renderCases() {
		objects, _ := rendered(t, s)
		template := deployment(t, objects).Spec.Template
		test := pick[corev1.Pod](t, objects, "Pod", deployment(t, objects).Name+"-test")
		for _, pod := range []corev1.Pod{{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, *test} {
			for _, r := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !r.Allowed {
					t.Errorf("%s: %s: %s", name, r.ForbiddenReason, r.ForbiddenDetail)
				}
			}
			for _, c := range pod.Spec.Containers {
				if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s may write to its file system", name, c.Name)
				}
			}
		}
	}
}

// OpenShift assigns the ids of users and groups itself.
func TestNullLeavesOutAFieldOfASecurityContext(t *testing.T) {
	t.Parallel()
	objects, _ := rendered(t, renderCase{values: "operator: {podSecurityContext: {runAsUser: null, runAsGroup: null}, securityContext: {capabilities: null}}"})
	spec := deployment(t, objects).Spec.Template.Spec
	if s := spec.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.RunAsNonRoot == nil {
		t.Errorf("got the pods' security context %+v, want neither user nor group, and the other fields", s)
	}
	if s := spec.Containers[0].SecurityContext; s.Capabilities != nil || s.ReadOnlyRootFilesystem == nil {
		t.Errorf("got the container's security context %+v, want no capabilities, and the other fields", s)
	}
}
