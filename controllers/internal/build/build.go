// Package build makes the objects that a RelayPool owns, as apply configurations
// that contain only the fields that the operator sets. It is pure: the same Input
// gives the same bytes, and nothing is read from the API, the clock or the
// environment.
package build

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// Input is everything that objects are built from.
type Input struct {
	// Pool is a RelayPool as the API server stores it: validated, with its defaults
	// set. It is not changed.
	Pool *v1alpha1.RelayPool
	// Image is the relay's image for a RelayPool that does not set spec.image.
	Image string
	// Replicas is the Deployment's number of replicas. If it is nil, the Deployment does not set
	// the field, so that an autoscaler can. If Withheld is set, the number is 0 whatever Replicas
	// says.
	Replicas *int32
	// Payers are the key files that the pods sign with: those in use, in any order. The spec's
	// signers are no files.
	Payers []PayerMount
	// Rollout identifies everything outside of the RelayPool that the pods read only at
	// their start: a string for each Secret and ConfigMap, made of name, uid and
	// resource version. The pods are replaced when the set of strings changes;
	// order and repetitions do not matter.
	Rollout []string
	// Capabilities says which optional kinds the cluster has.
	Capabilities Capabilities
	// OperatorNamespace and OperatorLabels select the operator's pods, which read /backlog. They
	// are empty if the operator runs outside of the cluster.
	OperatorNamespace string
	OperatorLabels    map[string]string
	// Withheld keeps the fleet at 0 pods, without an autoscaler.
	Withheld bool
}

// PayerMount is a fee payer's key that pods mount.
type PayerMount struct {
	// Secret is the name of a Secret, and Key is the name of the value in it.
	Secret, Key string
}

// Capabilities says which optional kinds the API server serves.
type Capabilities struct {
	PodMonitor, PrometheusRule, ScaledObject, HTTPRoute bool
}

// Object is one wanted object.
type Object struct {
	// Kind and Name identify the object within the RelayPool's namespace.
	Kind schema.GroupVersionKind
	Name string
	// Config has the object's name, namespace and labels. Package apply, or package keys for a
	// rotation Job, adds the owner.
	Config runtime.ApplyConfiguration
}

// Objects returns all objects that the RelayPool has to own, except rotation Jobs, in the order
// in which to apply them. The objects that pods need come first.
func Objects(in Input) []Object {
	objects := []Object{serviceAccount(in), configMap(in), service(in)}
	objects = append(objects, networkPolicy(in)...)
	objects = append(objects, exposure(in)...)
	objects = append(objects, podDisruptionBudget(in), deployment(in))
	objects = append(objects, scaler(in)...)
	return append(objects, monitoring(in)...)
}
