// Package build makes the objects that a RelayPool owns, as apply
// configurations that hold the fields the operator means and no other. It is
// pure: the same Input gives the same bytes; nothing is read from the API, the
// clock or the environment.
package build

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// Input is everything that objects are made from.
type Input struct {
	// Pool is a RelayPool as the API server holds it: checked by the resource's
	// rules, its defaults filled in. It is not changed.
	Pool *v1alpha1.RelayPool
	// Image is the relay's image where the RelayPool names none.
	Image string
	// Replicas of the Deployment. Nil leaves the field out, because an autoscaler
	// has it; Held makes it 0 in any case.
	Replicas *int32
	// Payers are the keys that the pods sign with: those in use, in any order.
	Payers []PayerMount
	// Rollout identifies everything outside of the RelayPool that the pods read at
	// their start: a string for each Secret and ConfigMap, made of name, uid and
	// resource version. The pods are replaced when the set of strings changes;
	// order and repetitions do not count.
	Rollout []string
	// Capabilities are the optional kinds that the cluster has.
	Capabilities Capabilities
	// OperatorNamespace and OperatorLabels find the operator's pods, which read
	// /backlog; empty when it runs outside of the cluster.
	OperatorNamespace string
	OperatorLabels    map[string]string
	// Held keeps the fleet at no pod, and makes no autoscaler.
	Held bool
}

// PayerMount is a fee payer's key that pods mount.
type PayerMount struct {
	// Secret is the name of a Secret, Key that of the value in it.
	Secret, Key string
}

// Capabilities are the optional kinds that the API server serves.
type Capabilities struct {
	PodMonitor, PrometheusRule, ScaledObject bool
}

// Object is one wanted object.
type Object struct {
	// Kind and Name identify it within the RelayPool's namespace.
	Kind schema.GroupVersionKind
	Name string
	// Config has name, namespace and labels; the owner is for whoever applies it.
	Config runtime.ApplyConfiguration
}

// Objects gives everything that the RelayPool is to own, rotation Jobs apart,
// in the order in which it is best applied: what pods need first.
func Objects(in Input) []Object {
	objects := []Object{serviceAccount(in), configMap(in), service(in)}
	objects = append(objects, networkPolicy(in)...)
	objects = append(objects, podDisruptionBudget(in), deployment(in))
	objects = append(objects, scaler(in)...)
	return append(objects, monitoring(in)...)
}
