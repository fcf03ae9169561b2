package build

import "maps"

// Labels and annotations.
const (
	// LabelName, LabelInstance, LabelComponent and LabelManagedBy are Kubernetes'
	// recommended labels.
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelPool is on everything that belongs to a RelayPool; its value is the RelayPool's
	// name.
	LabelPool = "relaypool.dev/pool"
	// LabelPayerState is on the Secret of every generated fee payer key, and on
	// nothing else.
	LabelPayerState = "relaypool.dev/payer-state"
	// AnnotationRollout is on the pod template; its value is a hash of what pods read at
	// their start.
	AnnotationRollout = "relaypool.dev/rollout-hash"
	// annotationLocalVolumes is on the pod template; its value names the volumes that do not make the
	// cluster autoscaler keep a node.
	annotationLocalVolumes = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
)

// Values of labels.
const (
	// Application is LabelName's value.
	Application = "relaypool"
	// Manager is LabelManagedBy's value.
	Manager = "relaypool-operator"
	// ComponentRelay is LabelComponent's value on the fleet and its objects.
	ComponentRelay = "relay"
	// ComponentRotation is LabelComponent's value on rotation Jobs and their pods,
	// which no Service and no Deployment may select as relays.
	ComponentRotation = "rotation"
)

// Labels returns the labels of every owned object of the RelayPool with that name.
func Labels(pool string) map[string]string {
	labels := Selector(pool)
	labels[LabelManagedBy] = Manager
	labels[LabelPool] = pool
	return labels
}

// Selector returns the labels that select the fleet's pods, and nothing else.
func Selector(pool string) map[string]string {
	return map[string]string{LabelName: Application, LabelInstance: pool, LabelComponent: ComponentRelay}
}

// mergeMaps returns the entries of both; the second's take precedence.
func mergeMaps(first, second map[string]string) map[string]string {
	merged := maps.Clone(first)
	if merged == nil {
		merged = make(map[string]string, len(second))
	}
	maps.Copy(merged, second)
	return merged
}
