package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// definition is a CRD of an optional kind, with an associative list as the real
// ones have.
func definition(kind schema.GroupVersionKind, plural string) *apiextensionsv1.CustomResourceDefinition {
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
						Type: "object", XPreserveUnknownFields: ptr(true),
						Properties: map[string]apiextensionsv1.JSONSchemaProps{"podMetricsEndpoints": {
							Type: "array", XListType: ptr("map"), XListMapKeys: []string{"port"},
							Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
								Type: "object", XPreserveUnknownFields: ptr(true), Required: []string{"port"},
								Properties: map[string]apiextensionsv1.JSONSchemaProps{
									"port": {Type: "string"}, "scheme": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"http"`)}}},
							}},
						}},
					}, "status": open},
				}},
			}},
		},
	}
}

// remove deletes a CRD and waits until the API server no longer serves it.
func (w *world) remove(d *apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	must(w.t, w.live.Delete(w.t.Context(), d.DeepCopy()))
	eventually(w.t, func() error {
		err := w.live.Get(w.t.Context(), client.ObjectKeyFromObject(d), d.DeepCopy())
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errorf("still there: %v", err)
	})
}

func TestOptionalKindsAreUsedWhileTheClusterHasThem(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiserver.Options{})
	config, err := server.Config()
	must(t, err)
	w := newWorldOn(t, config, apiservertest.NamespaceOn(t, config))
	monitors := definition(build.KindPodMonitor, "podmonitors")
	fixed := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1"})
	with := append(fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1"}), podMonitor())

	// Missing: the result reports it, and nothing else fails.
	result := w.apply(with)
	if diff := cmp.Diff([]schema.GroupVersionKind{build.KindPodMonitor}, result.MissingKinds); diff != "" || len(result.Applied) != len(fixed) {
		t.Fatalf("%+v\n%s", result, diff)
	}

	// Installed: used after the interval.
	must(t, server.Install(monitors.DeepCopy()))
	w.clock.advance(apply.DefaultCapabilityInterval)
	eventually(t, func() error {
		result, err := w.applier.Apply(t.Context(), w.owner, with)
		if err == nil && names(result.Applied) != "PodMonitor demo" {
			w.clock.advance(apply.DefaultCapabilityInterval)
			err = errorf("%+v", result)
		}
		return err
	})
	w.applyUntilUnchanged(with)

	// Unchanged: no write, and at most one read a minute; after a restart, too.
	for range 5 {
		w.apply(with)
	}
	if writes, reads := w.calls.reset(); len(writes)+len(reads) > 0 {
		t.Errorf("wrote %q, read %q, want no call", writes, reads)
	}
	w.restart()
	w.apply(with)
	if writes, _ := w.calls.reset(); len(writes) > 0 {
		t.Errorf("after a restart: wrote %q, want no call", writes)
	}

	// Drift.
	o := with[len(with)-1]
	u := w.get(o)
	set([]any{map[string]any{"port": "evil"}}, "spec", "podMetricsEndpoints")(u)
	must(t, w.live.Update(t.Context(), u, client.FieldOwner("another-manager")))
	w.clock.advance(apply.DefaultOptionalInterval)
	if result := w.apply(with); names(result.Repaired) != "PodMonitor demo" {
		t.Errorf("%+v, want the PodMonitor repaired", result)
	}

	// No longer wanted: pruned, and then no call any more.
	if result := w.apply(fixed); names(result.Pruned) != "PodMonitor demo" {
		t.Errorf("%+v, want the PodMonitor pruned", result)
	}
	w.apply(fixed)
	w.calls.reset()
	w.apply(fixed)
	if writes, reads := w.calls.reset(); len(writes)+len(reads) > 0 {
		t.Errorf("wrote %q, read %q, want no call", writes, reads)
	}

	// Removed from the cluster: missing again, wanted or not.
	w.apply(with)
	w.remove(monitors)
	w.clock.advance(apply.DefaultOptionalInterval)
	for _, objects := range [][]build.Object{with, fixed, with} {
		w.apply(objects)
	}
	w.clock.advance(apply.DefaultCapabilityInterval)
	if diff := cmp.Diff([]schema.GroupVersionKind{build.KindPodMonitor}, w.apply(with).MissingKinds); diff != "" {
		t.Error(diff)
	}
	// Installed again.
	must(t, server.Install(definition(build.KindPodMonitor, "podmonitors")))
	eventually(t, func() error {
		w.clock.advance(apply.DefaultCapabilityInterval)
		result, err := w.applier.Apply(t.Context(), w.owner, with)
		if err == nil && names(result.Applied) != "PodMonitor demo" {
			err = errorf("%+v", result)
		}
		return err
	})
}
