package build

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
)

// podDisruptionBudget lets the drain of a node evict one pod at a time, and any pod that
// is not ready.
func podDisruptionBudget(in Input) Object {
	name := in.Pool.Name
	return Object{KindPodDisruptionBudget, name, policyv1ac.PodDisruptionBudget(name, in.Pool.Namespace).
		WithLabels(Labels(name)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(name))))}
}
