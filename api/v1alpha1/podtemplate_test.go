package v1alpha1_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// A null in podTemplate takes away what the operator sets, so it has to reach the operator. A JSON
// merge patch, which kubectl apply and Helm send for a change, cannot carry a null; the directive
// $patch: replace says the same in a way that every client can.
func TestThePodTemplateKeepsNullsAndDirectives(t *testing.T) {
	t.Parallel()
	const (
		withNull    = `{"spec":{"securityContext":{"runAsUser":null}}}`
		replacement = `{"spec":{"securityContext":{"$patch":"replace","runAsNonRoot":true}}}`
	)
	tests := map[string]struct {
		write func(ctx context.Context, cl client.Client, pool *unstructured.Unstructured, value map[string]any) error
		given string
		want  string
	}{
		"a null, created":                        {create, withNull, withNull},
		"a null, applied by the server":          {applyByServer, withNull, withNull},
		"a null, merged, which is lost":          {mergePatch, withNull, `{"spec":{"securityContext":{}}}`},
		"a replacement, created":                 {create, replacement, replacement},
		"a replacement, applied by the server":   {applyByServer, replacement, replacement},
		"a replacement, merged, which is stored": {mergePatch, replacement, replacement},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := newClient(t)
			pool := minimal(t, apiservertest.Namespace(t))
			var value map[string]any
			if err := json.Unmarshal([]byte(tc.given), &value); err != nil {
				t.Fatal(err)
			}
			if err := tc.write(t.Context(), cl, pool, value); err != nil {
				t.Fatal(err)
			}
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(pool.GroupVersionKind())
			if err := cl.Get(t.Context(), client.ObjectKeyFromObject(pool), live); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(typed(t, live).Spec.Template.PodTemplate.Raw)); diff != "" {
				t.Errorf("podTemplate (-want +got):\n%s", diff)
			}
		})
	}
}

func setPodTemplate(pool *unstructured.Unstructured, value map[string]any) error {
	return unstructured.SetNestedMap(pool.Object, value, "spec", "template", "podTemplate")
}

func create(ctx context.Context, cl client.Client, pool *unstructured.Unstructured, value map[string]any) error {
	if err := setPodTemplate(pool, value); err != nil {
		return err
	}
	return cl.Create(ctx, pool)
}

func applyByServer(ctx context.Context, cl client.Client, pool *unstructured.Unstructured, value map[string]any) error {
	if err := setPodTemplate(pool, value); err != nil {
		return err
	}
	return cl.Apply(ctx, client.ApplyConfigurationFromUnstructured(pool), client.FieldOwner("test"))
}

func mergePatch(ctx context.Context, cl client.Client, pool *unstructured.Unstructured, value map[string]any) error {
	if err := cl.Create(ctx, pool); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"podTemplate": value}}})
	if err != nil {
		return err
	}
	return cl.Patch(ctx, pool, client.RawPatch(types.MergePatchType, patch))
}
