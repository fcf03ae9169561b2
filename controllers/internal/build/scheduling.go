package build

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
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

func schedule(spec *corev1ac.PodSpecApplyConfiguration, template *v1alpha1.Template) {
	if len(template.NodeSelector) > 0 {
		spec.WithNodeSelector(template.NodeSelector)
	}
	for _, t := range template.Tolerations {
		spec.WithTolerations(convert[corev1ac.TolerationApplyConfiguration](t))
	}
	if template.Affinity != nil {
		spec.WithAffinity(convert[corev1ac.AffinityApplyConfiguration](template.Affinity))
	}
	if template.PriorityClassName != "" {
		spec.WithPriorityClassName(template.PriorityClassName)
	}
	for _, s := range template.ImagePullSecrets {
		spec.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(s.Name))
	}
}
