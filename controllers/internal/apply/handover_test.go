package apply_test

import (
	"context"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

func (w *world) deployment() *appsv1.Deployment {
	w.t.Helper()
	var d appsv1.Deployment
	must(w.t, w.live.Get(w.t.Context(), client.ObjectKey{Namespace: w.owner.Namespace, Name: poolName}, &d))
	return &d
}

// scale changes the replicas as an autoscaler and kubectl scale do.
func (w *world) scale(replicas int32, manager string) {
	w.t.Helper()
	d := w.deployment()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	must(w.t, w.live.SubResource("scale").Update(w.t.Context(), d, client.WithSubResourceBody(scale), client.FieldOwner(manager)))
	w.waitForCache([]build.Object{deployment(shape{})})
}

// watchReplicas records every count that the Deployment has had.
func (w *world) watchReplicas() func() []int32 {
	w.t.Helper()
	watcher, err := client.NewWithWatch(w.config, client.Options{Scheme: w.scheme})
	must(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	stream, err := watcher.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(w.owner.Namespace))
	must(w.t, err)
	var mutex sync.Mutex
	var seen []int32
	newest := ""
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range stream.ResultChan() {
			if d, ok := e.Object.(*appsv1.Deployment); ok {
				mutex.Lock()
				seen, newest = append(seen, *d.Spec.Replicas), d.ResourceVersion
				mutex.Unlock()
			}
		}
	}()
	return func() []int32 {
		eventually(w.t, func() error {
			mutex.Lock()
			defer mutex.Unlock()
			if want := w.deployment().ResourceVersion; newest != want {
				return errorf("watch is at %s, the server at %s", newest, want)
			}
			return nil
		})
		stream.Stop()
		cancel()
		<-done
		return seen
	}
}

func (w *world) replicaManagers() map[string]bool {
	out := map[string]bool{}
	for _, e := range w.deployment().ManagedFields {
		out[e.Manager] = true
	}
	return out
}

func TestHandOverKeepsTheReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fixed := []build.Object{deployment(shape{replicas: ptr(int32(6)), image: "relay:1"})}
	w.apply(fixed)
	w.applyUntilUnchanged(fixed)
	seen := w.watchReplicas()

	// Hand the replicas over to the autoscaler.
	scaled := []build.Object{deployment(shape{image: "relay:1"}), horizontalPodAutoscaler()}
	if result := w.apply(scaled); !result.HandedOver {
		t.Errorf("%+v, want the replicas handed over", result)
	}
	w.applyUntilUnchanged(scaled)
	if !w.replicaManagers()[apply.HandOverFieldOwner] {
		t.Error("no manager owns the replicas, and the autoscaler has not scaled")
	}
	// The handover survives other changes and a restart.
	w.restart()
	scaled[0] = deployment(shape{image: "relay:2"})
	w.apply(scaled)
	w.applyUntilUnchanged(scaled)
	if got := *w.deployment().Spec.Replicas; got != 6 {
		t.Errorf("%d replicas, want 6", got)
	}
	// The autoscaler scales: it owns the field, and the handover ends.
	w.scale(9, "kube-controller-manager")
	w.applyUntilUnchanged(scaled)
	if w.replicaManagers()[apply.HandOverFieldOwner] {
		t.Errorf("the handover has not ended: %v", w.replicaManagers())
	}
	scaled[0] = deployment(shape{image: "relay:3"})
	w.apply(scaled)
	w.applyUntilUnchanged(scaled)
	if got := *w.deployment().Spec.Replicas; got != 9 {
		t.Errorf("%d replicas, want the autoscaler's 9", got)
	}

	// Hand them back to the specification, at the live count.
	live := w.deployment()
	back := []build.Object{deployment(shape{replicas: live.Spec.Replicas, image: "relay:3"})}
	w.apply(back, apply.IfDeploymentVersion(live.ResourceVersion))
	w.applyUntilUnchanged(back)
	if got := *w.deployment().Spec.Replicas; got != 9 {
		t.Errorf("%d replicas, want 9", got)
	}
	// Hand them over once more, and back at the user's count.
	w.apply(scaled)
	w.applyUntilUnchanged(scaled)
	back = []build.Object{deployment(shape{replicas: ptr(int32(12)), image: "relay:3"})}
	w.apply(back)
	w.applyUntilUnchanged(back)
	if managers := w.replicaManagers(); managers[apply.HandOverFieldOwner] {
		t.Errorf("the handover has not ended: %v", managers)
	}
	for _, n := range seen() {
		if n != 6 && n != 9 && n != 12 {
			t.Fatalf("a count of %d was seen, want only 6, 9 and 12", n)
		}
	}
}

func TestCopiedReplicasDoNotOverwriteANewerCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := []build.Object{deployment(shape{replicas: ptr(int32(3)), image: "relay:1"})}
	w.apply(objects)
	w.applyUntilUnchanged(objects)
	planned := w.deployment()
	w.scale(8, "kubectl")
	objects = []build.Object{deployment(shape{replicas: planned.Spec.Replicas, image: "relay:2"})}
	_, err := w.applier.Apply(t.Context(), w.owner, objects, apply.IfDeploymentVersion(planned.ResourceVersion))
	if !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if got := *w.deployment().Spec.Replicas; got != 8 {
		t.Errorf("%d replicas, want 8", got)
	}
}

func TestHandOverUsesTheLiveCountNotTheCachedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := []build.Object{deployment(shape{replicas: ptr(int32(3)), image: "relay:1"})}
	w.apply(objects)
	w.applyUntilUnchanged(objects)
	// The cache still says 3 just after a scaling.
	d := w.deployment()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 8}}
	must(t, w.live.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale)))
	w.apply([]build.Object{deployment(shape{image: "relay:1"})})
	if got := *w.deployment().Spec.Replicas; got != 8 {
		t.Errorf("%d replicas, want 8", got)
	}
}
