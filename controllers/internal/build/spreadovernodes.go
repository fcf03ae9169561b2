package build

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// spreadOver distributes the pods of one rollout over the values of a node label. It is a
// preference: a fleet that cannot be distributed still serves.
func spreadOver(pool, nodeLabel string) *corev1ac.TopologySpreadConstraintApplyConfiguration {
	return corev1ac.TopologySpreadConstraint().
		WithTopologyKey(nodeLabel).
		WithMaxSkew(1).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(pool))).
		WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey)
}
