package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names an object in the RelayPool's namespace.
type Ref struct {
	Kind schema.GroupVersionKind
	Name string
}

// String returns the kind and the name: Deployment demo.
func (r Ref) String() string { return r.Kind.Kind + " " + r.Name }

// Refusal is an object that the API server refused, because it is invalid or because admission or
// a quota forbids it.
type Refusal struct {
	Ref
	// Reason is the API server's reason, such as Invalid or Forbidden.
	Reason string
	// Message is the API server's message, without values of fields and without the usage figures
	// of a quota. It has at most maxRefusal bytes.
	Message string
}

// Result is what a pass wrote and found. Each object is in at most one of the
// lists; an unchanged object is in none.
type Result struct {
	// Applied lists objects that were created, or changed because the wanted content
	// changed.
	Applied []Ref
	// Repaired lists objects that another writer had changed or deleted, and this pass
	// restored.
	Repaired []Ref
	// Pruned lists objects that were deleted because they are no longer wanted.
	Pruned []Ref
	// Foreign lists objects that belong to another owner; they were not changed.
	Foreign []Ref
	// Withheld lists objects that were neither created nor changed, because their pods would
	// use a ServiceAccount or ConfigMap of another owner. Foreign lists that ServiceAccount or
	// ConfigMap.
	Withheld []Ref
	// Contested lists objects that another writer changes repeatedly; the next repair is
	// delayed.
	Contested []Ref
	// Waiting lists objects that are being deleted, or wait for the deletion of another
	// object; a later pass creates them.
	Waiting []Ref
	// Refused lists objects that the API server refused.
	Refused []Refusal
	// MissingKinds are wanted optional kinds that the cluster does not have.
	MissingKinds []schema.GroupVersionKind
	// HandedOver is set if this pass handed the Deployment's field replicas over to the
	// autoscaler. The handover does not change the value.
	HandedOver bool
	// RetryAfter is the time after which another pass must run, because no watch event will start
	// it; 0 if no such pass is needed.
	RetryAfter time.Duration
}

// Changed reports whether the pass wrote anything.
func (r Result) Changed() bool {
	return len(r.Applied)+len(r.Repaired)+len(r.Pruned) > 0 || r.HandedOver
}

// retryWithin makes another pass run after delay at the latest. A delay of 0 changes nothing.
func (r *Result) retryWithin(delay time.Duration) {
	if delay > 0 && (r.RetryAfter == 0 || delay < r.RetryAfter) {
		r.RetryAfter = delay
	}
}
