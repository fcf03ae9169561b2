package manager

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// cacheOptions keep what belongs to RelayPools and nothing else: of each kind
// only objects with the label of their pool are listed and watched. Memory and
// traffic grow with the fleets, not with the cluster.
func cacheOptions(namespaces []string, resync time.Duration) cache.Options {
	o := cache.Options{
		DefaultLabelSelector: ofPools(),
		DefaultTransform:     apply.CacheTransform,
		ByObject: map[client.Object]cache.ByObject{
			// A RelayPool is its user's, who labels it as he likes. Of all kinds it
			// alone is worked on again for the mere passing of time.
			&v1alpha1.RelayPool{}: {Label: labels.Everything(), Transform: cache.TransformStripManagedFields(), SyncPeriod: &resync},
			&corev1.Pod{}:         {Label: ofPools(), Transform: shrinkPod},
		},
	}
	if len(namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range namespaces {
			o.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return o
}

// clientOptions read Secrets from the API server: a cached read would list and
// watch them, which the operator may not, and keep their values in memory.
func clientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
}

// ofPools selects what has the label of a pool, whichever.
func ofPools() labels.Selector {
	// The error is for values and operators that do not fit; here are none of the first.
	has, _ := labels.NewRequirement(build.LabelPool, selection.Exists, nil)
	return labels.NewSelector().Add(*has)
}

// shrinkPod keeps of a pod who it is, how it fares, and what it mounts: a
// rotation of keys waits until no pod has the old ones. The largest part of a pod
// is what the Deployment says as well, and who manages which field.
func shrinkPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok { // the last state of a pod whose deletion was missed
		return object, nil
	}
	pod.ManagedFields = nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: pod.Spec.Volumes}
	return pod, nil
}
