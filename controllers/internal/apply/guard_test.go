package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	controlledBy := func(apiVersion, kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr(true)}}
	}
	cases := map[string]struct {
		labels  map[string]string
		owners  []metav1.OwnerReference
		waiting bool
	}{
		"made by hand, without our label": {},
		"made by hand, with our label":    {labels: build.Labels(poolName)},
		"owned by another controller":     {owners: controlledBy("apps/v1", "ReplicaSet", "x", "1")},
		"owned by another RelayPool":      {labels: build.Labels(poolName), owners: controlledBy("relaypool.dev/v1alpha1", "RelayPool", "other", "1")},
		"owned by an earlier RelayPool of the same name, and therefore soon deleted": {
			labels: build.Labels(poolName), owners: controlledBy("relaypool.dev/v1alpha1", "RelayPool", poolName, "1"), waiting: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			foreign := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.owner.Namespace, Name: poolName, Labels: c.labels, OwnerReferences: c.owners},
				Data:       map[string]string{"theirs": "yes"},
			}
			must(t, w.live.Create(t.Context(), foreign))
			objects := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1"})
			result := w.apply(objects)
			ref := []apply.Ref{{Kind: build.KindConfigMap, Name: poolName}}
			got := result.Foreign
			if c.waiting {
				got = result.Waiting
			}
			if diff := cmp.Diff(ref, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// A foreign object would configure the pods.
			withheld := []apply.Ref{{Kind: build.KindDeployment, Name: poolName}}
			if c.waiting {
				withheld = nil
			}
			if diff := cmp.Diff(withheld, result.Withheld); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
			if len(result.Applied) != len(objects)-1-len(withheld) {
				t.Errorf("applied %s, want the others", names(result.Applied))
			}
			var now corev1.ConfigMap
			must(t, w.live.Get(t.Context(), client.ObjectKeyFromObject(foreign), &now))
			if now.ResourceVersion != foreign.ResourceVersion {
				t.Errorf("the foreign ConfigMap was changed: %+v", now)
			}
			// After the foreign object is deleted, the wanted one is created.
			must(t, w.live.Delete(t.Context(), &now))
			want := names(append(ref, withheld...))
			eventually(t, func() error {
				result, err := w.applier.Apply(t.Context(), w.owner, objects)
				if err == nil && names(result.Applied) != want {
					err = errorf("%+v", result)
				}
				return err
			})
			w.applyUntilUnchanged(objects)
		})
	}
}

func TestOrphanedObjectsAreAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1"})
	w.apply(objects)
	w.applyUntilUnchanged(objects)
	// The RelayPool was deleted with --cascade=orphan and recreated.
	for _, o := range objects {
		u := w.get(o)
		u.SetOwnerReferences(nil)
		must(t, w.live.Update(t.Context(), u))
	}
	w.owner = &v1alpha1.RelayPool{ObjectMeta: metav1.ObjectMeta{Namespace: w.owner.Namespace, Name: poolName, UID: "the-next-one"}}
	w.waitForCache(objects)
	result := w.apply(objects)
	if len(result.Applied) != len(objects) || len(result.Foreign) > 0 {
		t.Errorf("%+v, want all of them applied", result)
	}
	for _, o := range objects {
		if !metav1.IsControlledBy(w.get(o), w.owner) {
			t.Errorf("%s is not controlled by the new RelayPool", o.Kind.Kind)
		}
	}
	w.applyUntilUnchanged(objects)
}

func TestApplyWaitsForAnObjectThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := fixedObjects(shape{replicas: ptr(int32(2)), image: "relay:1"})
	w.apply(objects)
	w.applyUntilUnchanged(objects)
	o := objects[1]
	u := w.get(o)
	u.SetFinalizers([]string{"test.example/hold"})
	must(t, w.live.Update(t.Context(), u))
	must(t, w.live.Delete(t.Context(), u))
	w.waitForCache(objects)
	w.calls.reset()
	result := w.apply(objects)
	if diff := cmp.Diff([]apply.Ref{{Kind: o.Kind, Name: o.Name}}, result.Waiting); diff != "" || result.RetryAfter == 0 {
		t.Errorf("waiting (-want +got), again after %s:\n%s", result.RetryAfter, diff)
	}
	if writes, _ := w.calls.reset(); len(writes) > 0 {
		t.Errorf("wrote %q, want no call", writes)
	}
	u = w.get(o)
	u.SetFinalizers(nil)
	must(t, w.live.Update(t.Context(), u))
	eventually(t, func() error {
		_, err := w.applier.Apply(t.Context(), w.owner, objects)
		if err != nil {
			return err
		}
		return w.live.Get(t.Context(), client.ObjectKeyFromObject(u), &corev1.ConfigMap{})
	})
	w.applyUntilUnchanged(objects)
}
