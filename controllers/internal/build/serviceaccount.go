package build

import corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

// serviceAccount gives pods an identity of their own. They never call the API server, so no token
// for it is mounted. The annotations of the spec are for identities in a cloud.
func serviceAccount(in Input) Object {
	name := in.Pool.Name
	return Object{KindServiceAccount, name, corev1ac.ServiceAccount(name, in.Pool.Namespace).
		WithLabels(Labels(name)).
		WithAnnotations(in.Pool.Spec.Template.ServiceAccountAnnotations).
		WithAutomountServiceAccountToken(false)}
}
