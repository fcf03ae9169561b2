package apply_test

import (
	"context"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// A cache without the operator's last write shows outdated field ownership.
// Replicas that were just applied and are now left to the autoscaler
// must still be handed over.
func TestReplicasAreHandedOverThoughTheCacheIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var stale atomic.Pointer[appsv1.Deployment]
	lagging := interceptor.NewClient(w.cached.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if d, ok := o.(*appsv1.Deployment); ok && stale.Load() != nil {
				stale.Load().DeepCopyInto(d)
				return nil
			}
			return inner.Get(ctx, key, o, opts...)
		},
	})
	disco, err := discovery.NewDiscoveryClientForConfig(w.config)
	must(t, err)
	capabilities, err := apply.NewCapabilities(disco, w.clock.Now, 0)
	must(t, err)
	w.applier, err = apply.New(apply.Options{Client: lagging, Live: w.live, Capabilities: capabilities, Now: w.clock.Now})
	must(t, err)

	fixed := []build.Object{deployment(shape{replicas: ptr(int32(6)), image: "relay:1"})}
	scaled := []build.Object{deployment(shape{image: "relay:1"}), horizontalPodAutoscaler()}
	w.apply(fixed)
	w.applyUntilUnchanged(fixed)
	w.apply(scaled)
	w.applyUntilUnchanged(scaled)
	w.scale(9, "kube-controller-manager")
	w.applyUntilUnchanged(scaled)

	stale.Store(w.deployment()) // the cache stops here
	fixed = []build.Object{deployment(shape{replicas: ptr(int32(7)), image: "relay:1"})}
	w.apply(fixed)
	if got := *w.deployment().Spec.Replicas; got != 7 {
		t.Fatalf("%d replicas, want the 7 of the specification", got)
	}
	scaled[0] = deployment(shape{image: "relay:2"})
	w.apply(scaled)
	if got := *w.deployment().Spec.Replicas; got != 7 {
		t.Errorf("%d replicas after they were left to the autoscaler again, want 7 as before", got)
	}
}
