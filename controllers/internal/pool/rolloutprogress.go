package pool

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// deadlineExceeded is the reason of the Deployment's condition Progressing after a rollout
// has exceeded its deadline.
const deadlineExceeded = "ProgressDeadlineExceeded"

// rollingOut reports whether a rollout is under way and not stuck: wanted pods are missing,
// or pods of the old template still run.
func rollingOut(f *Facts) bool {
	d := f.Fleet.Deployment
	if d == nil {
		return true
	}
	if rolloutStuck(d) {
		return false
	}
	wanted, s := f.Fleet.deploymentReplicas(), &d.Status
	return s.ObservedGeneration < d.Generation || s.UpdatedReplicas != wanted || s.Replicas != wanted || s.AvailableReplicas != wanted
}

func rolloutStuck(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c.Status == corev1.ConditionFalse && c.Reason == deadlineExceeded
		}
	}
	return false
}

// replicaFailure returns why pods could not be created, such as an exceeded quota; empty if
// the Deployment reports no such failure.
func replicaFailure(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return "pods cannot be made (" + c.Reason + "): " + withoutGeneratedNames(c.Message, nil)
		}
	}
	return ""
}
