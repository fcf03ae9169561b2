package build

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

const (
	// revisionHistory is how many old ReplicaSets are kept for manual rollbacks.
	revisionHistory = 3
	// progressDeadline is how long a rollout may make no progress before the Deployment reports a
	// failed rollout.
	progressDeadline = 10 * time.Minute
)

// deployment makes the fleet's Deployment.
func deployment(in Input) Object {
	name := in.Pool.Name
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(name))).
		WithMinReadySeconds(0). // no extra wait: a ready pod has already migrated the database
		WithProgressDeadlineSeconds(int32(progressDeadline / time.Second)).
		WithRevisionHistoryLimit(revisionHistory).
		WithStrategy(addPodBeforeRemoving()).
		WithTemplate(finish(in, relayTemplate(in)))
	switch {
	case in.Withheld:
		spec.WithReplicas(0)
	case in.Replicas != nil:
		spec.WithReplicas(*in.Replicas)
	}
	return Object{KindDeployment, name, appsv1ac.Deployment(name, in.Pool.Namespace).
		WithLabels(Labels(name)).
		WithSpec(spec)}
}

// relayTemplate makes the template of the fleet's pods, without spec.template.podTemplate.
func relayTemplate(in Input) *corev1ac.PodTemplateSpecApplyConfiguration {
	name, template := in.Pool.Name, &in.Pool.Spec.Template
	// Users whose pods have volumes of their own name those in this annotation, too.
	annotations := mergeMaps(map[string]string{annotationLocalVolumes: temporaryVolume}, template.Annotations)
	return corev1ac.PodTemplateSpec().
		WithLabels(mergeMaps(template.Labels, Labels(name))).
		WithAnnotations(mergeMaps(annotations, map[string]string{AnnotationRollout: rolloutHash(in)})).
		WithSpec(relayPodSpec(in).
			WithTopologySpreadConstraints(
				spreadOver(name, corev1.LabelTopologyZone),
				spreadOver(name, corev1.LabelHostname)))
}
