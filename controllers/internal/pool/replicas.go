package pool

import "k8s.io/utils/ptr"

// defaultReplicas is the size of a fleet when neither the spec nor an autoscaler
// sets one.
const defaultReplicas = 2

// replicas returns the number of pods to apply; nil leaves the number to the autoscaler.
// derived means that the result depends on the number in the Deployment, which may change
// before the write.
func replicas(f *Facts, withheld bool) (wanted *int32, derived bool) {
	current := f.Fleet.deploymentReplicas()
	spec := &f.Pool.Spec
	switch {
	case withheld:
		return ptr.To[int32](0), false
	case spec.Autoscaling != nil && current > 0:
		return nil, false
	case spec.Autoscaling != nil:
		// An autoscaler does not start a fleet of 0 pods.
		return ptr.To(max(spec.Autoscaling.MinReplicas, 1)), true
	case spec.Replicas != nil:
		return spec.Replicas, false
	case current > 0:
		return &current, true
	default:
		return ptr.To[int32](defaultReplicas), f.Fleet.Deployment != nil
	}
}
