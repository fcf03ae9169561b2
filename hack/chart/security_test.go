package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
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
		for _, r := range evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
			if !r.Allowed {
				t.Errorf("%s: %s: %s", name, r.ForbiddenReason, r.ForbiddenDetail)
			}
		}
		for _, c := range template.Spec.Containers {
			if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("%s: %s may write to its file system", name, c.Name)
			}
		}
	}
}
