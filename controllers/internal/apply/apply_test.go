package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

func TestASteadyStateWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := append(fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1", hpa: true}), job("demo-payer-1-fund"))
	first := w.apply(objects)
	if len(first.Applied) != len(objects) {
		t.Fatalf("applied %s, want all %d objects", names(first.Applied), len(objects))
	}
	w.waitForCache(objects)
	before := w.versions(objects)
	w.calls.reset()
	for name, restart := range map[string]bool{"before a restart": false, "after a restart": true} {
		if restart {
			w.restart()
		}
		for range 3 {
			result := w.apply(objects)
			if result.Changed() || len(result.Refused)+len(result.Foreign)+len(result.Waiting) > 0 {
				t.Errorf("%s: %+v, want nothing done", name, result)
			}
		}
		writes, reads := w.calls.reset()
		if len(writes) > 0 {
			t.Errorf("%s: wrote %q, want no call", name, writes)
		}
		if len(reads) > 0 {
			t.Errorf("%s: read %q past the cache, want no call", name, reads)
		}
	}
	if diff := cmp.Diff(before, w.versions(objects)); diff != "" {
		t.Errorf("resource versions changed:\n%s", diff)
	}
}

func TestWritesAreNotRepeatedWhileTheCacheIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := shape{replicas: ptr(int32(2)), image: "relay:1"}
	w.apply(fixedObjects(s))
	w.applyUntilUnchanged(fixedObjects(s))
	for i := range 5 {
		s.image = "relay:" + strings.Repeat("2", i+1)
		w.apply(fixedObjects(s))
		w.calls.reset()
		if result := w.apply(fixedObjects(s)); result.Changed() {
			t.Fatalf("%+v, want nothing changed", result)
		}
		if writes, _ := w.calls.reset(); len(writes) > 0 {
			t.Fatalf("wrote %q, want no call", writes)
		}
	}
}

// changeAsOther changes an object as another manager, and fails the test if nothing changed.
func (w *world) changeAsOther(o build.Object, change func(u *unstructured.Unstructured)) {
	w.t.Helper()
	u := w.get(o)
	before := u.GetResourceVersion()
	change(u)
	must(w.t, w.live.Update(w.t.Context(), u, client.FieldOwner("another-manager")))
	if u.GetResourceVersion() == before {
		w.t.Fatalf("the update of %s changed nothing", o.Kind.Kind)
	}
	w.waitForCache([]build.Object{o})
}

func set(value any, fields ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, fields...); err != nil {
			panic(err)
		}
	}
}

func TestDriftIsRepairedAndReported(t *testing.T) {
	t.Parallel()
	drift := map[string]struct {
		kind    string
		change  func(u *unstructured.Unstructured)
		removes bool // the change removes a field, which then no manager owns
	}{
		"a Deployment's image is changed": {kind: "Deployment", change: func(u *unstructured.Unstructured) {
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)["image"] = "evil:1"
			set(containers, "spec", "template", "spec", "containers")(u)
		}},
		"a Deployment is scaled":          {kind: "Deployment", change: set(int64(7), "spec", "replicas")},
		"a Deployment's surge is changed": {kind: "Deployment", change: set(int64(3), "spec", "strategy", "rollingUpdate", "maxSurge")},
		"an environment variable is removed": {kind: "Deployment", removes: true, change: func(u *unstructured.Unstructured) {
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			c := containers[0].(map[string]any)
			c["env"] = c["env"].([]any)[1:]
			set(containers, "spec", "template", "spec", "containers")(u)
		}},
		"a ConfigMap's file is changed":   {kind: "ConfigMap", change: set("x", "data", "endpoints.yaml")},
		"a ConfigMap's file is removed":   {kind: "ConfigMap", removes: true, change: set(map[string]any{}, "data")},
		"a Service's selector is changed": {kind: "Service", change: set(map[string]any{"app": "evil"}, "spec", "selector")},
		"a Service's port is changed": {kind: "Service", change: func(u *unstructured.Unstructured) {
			ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
			ports[0].(map[string]any)["targetPort"] = int64(22)
			set(ports, "spec", "ports")(u)
		}},
		"a ServiceAccount gets its token mounted": {kind: "ServiceAccount", change: set(true, "automountServiceAccountToken")},
		"a PodDisruptionBudget is loosened":       {kind: "PodDisruptionBudget", change: set("100%", "spec", "maxUnavailable")},
		"a NetworkPolicy is opened":               {kind: "NetworkPolicy", change: set([]any{map[string]any{}}, "spec", "ingress")},
		"a NetworkPolicy's pods are changed":      {kind: "NetworkPolicy", change: set(map[string]any{}, "spec", "podSelector")},
		"an autoscaler's maximum is changed":      {kind: "HorizontalPodAutoscaler", change: set(int64(99), "spec", "maxReplicas")},
		"an autoscaler's metrics are changed": {kind: "HorizontalPodAutoscaler", change: func(u *unstructured.Unstructured) {
			set([]any{map[string]any{"type": "Resource", "resource": map[string]any{"name": "cpu",
				"target": map[string]any{"type": "Utilization", "averageUtilization": int64(50)}}}}, "spec", "metrics")(u)
		}},
		"a label is changed": {kind: "Service", change: set("evil", "metadata", "labels", build.LabelName)},
		"the owner is removed": {kind: "ConfigMap", removes: true, change: func(u *unstructured.Unstructured) {
			u.SetOwnerReferences(nil)
		}},
	}
	for name, d := range drift {
		for restarted, note := range map[bool]string{false: "", true: ", while the operator is down"} {
			t.Run(name+note, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				objects := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1", hpa: d.kind == "HorizontalPodAutoscaler"})
				o := objects[slices.IndexFunc(objects, func(o build.Object) bool { return o.Kind.Kind == d.kind })]
				w.apply(objects)
				w.applyUntilUnchanged(objects)
				before := specOf(w.get(o))
				w.changeAsOther(o, d.change)
				if restarted {
					w.restart()
				}
				result := w.apply(objects)
				want := apply.Result{Repaired: []apply.Ref{{Kind: o.Kind, Name: o.Name}}}
				if restarted && d.removes {
					want = apply.Result{Applied: want.Repaired}
				}
				if diff := cmp.Diff(want, result); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(before, specOf(w.get(o))); diff != "" {
					t.Errorf("not repaired (-want +got):\n%s", diff)
				}
				w.applyUntilUnchanged(objects)
			})
		}
	}
}

// specOf returns an object without the fields that every write changes.
func specOf(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	u.SetGeneration(0)
	u.SetManagedFields(nil)
	delete(u.Object, "status")
	return u.Object
}

func TestAnObjectThatWasDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1", hpa: true})
	w.apply(objects)
	w.applyUntilUnchanged(objects)
	for _, o := range objects {
		u := w.get(o)
		must(t, w.live.Delete(t.Context(), u))
	}
	// The cache may lag: no pass fails because of that, and all objects are made again.
	repaired := map[string]bool{}
	eventually(t, func() error {
		result, err := w.applier.Apply(t.Context(), w.owner, objects)
		for _, r := range result.Repaired {
			repaired[r.String()] = true
		}
		if err != nil {
			return err
		}
		if len(repaired) < len(objects) {
			return errorf("recreated only %v", repaired)
		}
		return nil
	})
	w.applyUntilUnchanged(objects)
}

func TestARemovedPoolLabelIsRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1"})
	w.apply(objects)
	w.applyUntilUnchanged(objects)
	o := objects[1]
	u := w.get(o)
	labels := u.GetLabels()
	delete(labels, build.LabelPool)
	u.SetLabels(labels)
	must(t, w.live.Update(t.Context(), u, client.FieldOwner("another-manager")))
	eventually(t, func() error {
		if _, err := w.applier.Apply(t.Context(), w.owner, objects); err != nil {
			return err
		}
		if got := w.get(o).GetLabels()[build.LabelPool]; got != poolName {
			return errorf("label is %q", got)
		}
		return nil
	})
	w.applyUntilUnchanged(objects)
}

func TestUnwantedFieldsAreRemoved(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"before a restart": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			with := []build.Object{configMap(shape{label: "extra"})}
			without := []build.Object{configMap(shape{})}
			w.apply(with)
			w.applyUntilUnchanged(with)
			// Another owner's label stays.
			w.changeAsOther(with[0], set("kept", "metadata", "labels", "other-owner"))
			w.applyUntilUnchanged(with)
			if restart {
				w.restart()
			}
			result := w.apply(without)
			if got := names(result.Applied); got != "ConfigMap demo" || len(result.Repaired) > 0 {
				t.Errorf("%+v, want the ConfigMap applied", result)
			}
			labels := w.get(with[0]).GetLabels()
			if _, there := labels["extra"]; there || labels["other-owner"] != "kept" {
				t.Errorf("labels are %v, want extra removed and other-owner kept", labels)
			}
			w.applyUntilUnchanged(without)
		})
	}
}

func TestAJobIsMadeOnceAndNotChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := []build.Object{job("demo-payer-1-fund")}
	w.apply(objects)
	w.applyUntilUnchanged(objects)
	w.changeAsOther(objects[0], set(true, "spec", "suspend"))
	w.calls.reset()
	if result := w.apply(objects); result.Changed() || len(result.Refused) > 0 {
		t.Errorf("%+v, want the Job left as it is", result)
	}
	if writes, _ := w.calls.reset(); len(writes) > 0 {
		t.Errorf("wrote %q, want no call", writes)
	}
}

func TestUnwantedObjectsArePruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	all := append(fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1", hpa: true}),
		job("demo-payer-1-fund"), job("demo-payer-1-sweep"))
	w.apply(all)
	w.applyUntilUnchanged(all)

	// These objects have the label and must not be changed.
	foreign := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "unowned", Labels: build.Labels(poolName)}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "others", Labels: build.Labels(poolName), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "relaypool.dev/v1alpha1", Kind: "RelayPool", Name: poolName, UID: "another", Controller: ptr(true)}}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "not-controlled", Labels: build.Labels(poolName), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "relaypool.dev/v1alpha1", Kind: "RelayPool", Name: poolName, UID: w.owner.UID}}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other-pool", Labels: build.Labels("other"), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "relaypool.dev/v1alpha1", Kind: "RelayPool", Name: "other", UID: "another", Controller: ptr(true)}}}},
	}
	for _, o := range foreign {
		o.SetNamespace(w.owner.Namespace)
		must(t, w.live.Create(ctx, o))
		eventually(t, func() error {
			return w.cached.Get(ctx, client.ObjectKeyFromObject(o), &corev1.ConfigMap{})
		})
	}

	kept := all[5:6] // the Deployment
	result := w.apply(kept)
	want := "ConfigMap demo, HorizontalPodAutoscaler demo, NetworkPolicy demo, PodDisruptionBudget demo, Service demo, ServiceAccount demo"
	if got := names(result.Pruned); got != want {
		t.Errorf("pruned %s\nwant   %s", got, want)
	}
	for _, o := range foreign {
		must(t, w.live.Get(ctx, client.ObjectKeyFromObject(o), &corev1.ConfigMap{}))
	}
	for _, job := range []string{"demo-payer-1-sweep", "demo-payer-1-fund"} { // a rotation deletes its Jobs
		must(t, w.live.Get(ctx, client.ObjectKey{Namespace: w.owner.Namespace, Name: job}, &batchv1.Job{}))
	}
	must(t, w.live.Get(ctx, client.ObjectKey{Namespace: w.owner.Namespace, Name: poolName}, &appsv1.Deployment{}))
}
