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

// cacheOptions limits the cache to RelayPools and their objects. The cache lists and watches all
// RelayPools, but an object of another kind only if it has the label of a pool. So memory and
// traffic grow with the fleets, not with the cluster.
func cacheOptions(namespaces []string, resync time.Duration) cache.Options {
	o := cache.Options{
		DefaultLabelSelector: hasPoolLabel(),
		DefaultTransform:     apply.CacheTransform,
		ByObject: map[client.Object]cache.ByObject{
			// RelayPools need no label. They are the only kind that is reconciled again after the
			// resync period, even without a change.
			&v1alpha1.RelayPool{}: {Label: labels.Everything(), Transform: cache.TransformStripManagedFields(), SyncPeriod: &resync},
			&corev1.Pod{}:         {Label: hasPoolLabel(), Transform: shrinkPod},
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

// clientOptions makes clients read Secrets from the API server. A cached read would list and
// watch Secrets, which the operator is not permitted to do, and keep their values in memory.
func clientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
}

// hasPoolLabel selects objects that have the label of any pool.
func hasPoolLabel() labels.Selector {
	// The error is for invalid operators and values; this requirement has no values.
	has, _ := labels.NewRequirement(build.LabelPool, selection.Exists, nil)
	return labels.NewSelector().Add(*has)
}

// shrinkPod keeps a pod's metadata, status, node name and volumes. The volumes show which pods
// still mount old keys, because a rotation waits for such pods. shrinkPod drops the managed
// fields and the largest parts of a pod, which only repeat the Deployment's pod template.
func shrinkPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok { // a cache.DeletedFinalStateUnknown: the watch missed the deletion of a pod
		return object, nil
	}
	pod.ManagedFields = nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: pod.Spec.Volumes}
	return pod, nil
}
