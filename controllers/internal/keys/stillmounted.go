package keys

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// RolloutOf returns what a decision needs to know about the fleet. deployment is nil if the
// fleet has none; pods are all pods of the fleet, including terminating ones.
func RolloutOf(deployment *appsv1.Deployment, pods []corev1.Pod) Rollout {
	r := Rollout{Known: true, Complete: true}
	if deployment != nil {
		s := deployment.Status
		r.Template = secretsOf(&deployment.Spec.Template.Spec)
		r.Complete = s.ObservedGeneration >= deployment.Generation && s.Replicas == s.UpdatedReplicas
	}
	for i := range pods {
		// A pod that has ended signs nothing more, although it may exist for a long time.
		if phase := pods[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			r.Pods = append(r.Pods, secretsOf(&pods[i].Spec)...)
		}
	}
	return r
}

// secretsOf lists the Secrets that a pod mounts.
func secretsOf(spec *corev1.PodSpec) []string {
	var names []string
	for _, v := range spec.Volumes {
		if v.Secret != nil {
			names = append(names, v.Secret.SecretName)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				names = append(names, source.Secret.Name)
			}
		}
	}
	return names
}

// whyStillMounted returns why the fleet may still sign with one of the keys; empty if the fleet
// cannot. rolledOut means that the rollout that removed the keys was complete in an earlier
// pass. In that case a rollout that is under way now replaces only pods without the keys, so
// it does not count.
func (d *decision) whyStillMounted(keys []Key, rolledOut bool) string {
	mounted := func(secrets []string) bool {
		return slices.ContainsFunc(keys, func(k Key) bool { return slices.Contains(secrets, k.Secret) })
	}
	switch r := d.Rollout; {
	case !r.Known:
		return "the fleet's Deployment and pods could not be read"
	case mounted(r.Template):
		return "the fleet's Deployment is about to get the new keys"
	case mounted(r.Pods):
		return "pods with the old keys are being replaced"
	case !r.Complete && !rolledOut:
		return "the rollout with the new keys is under way"
	}
	return ""
}
