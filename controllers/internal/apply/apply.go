// Package apply carries out a plan: it writes the objects of a RelayPool by server-side apply, as
// package build made them, and deletes the objects that are no longer wanted.
//
// It never changes an object of another owner, and writes nothing if nothing would change. If one
// object is refused, it continues with the others.
package apply

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// These are the field owners. FieldOwner owns all fields that package build sets;
// HandOverFieldOwner owns a Deployment's replicas during a handover.
const (
	FieldOwner         = "relaypool-operator"
	HandOverFieldOwner = "relaypool-operator-handover"
)

// Defaults of Options and, for DefaultCapabilityInterval, of NewCapabilities.
const (
	DefaultCapabilityInterval = 30 * time.Second
	DefaultRefusalInterval    = time.Minute
	DefaultOptionalInterval   = time.Minute
)

// Options is what an Applier needs. Durations of 0 take their defaults.
type Options struct {
	// Client writes. It reads the kinds of OwnedTypes from a cache, which may be limited to
	// objects that have the label build.LabelPool. The cache must keep the managed fields of the
	// spec. CacheTransform keeps these and drops the others.
	Client client.Client
	// Live reads from the API server: objects that the cache does not have, and
	// objects of optional kinds.
	Live client.Reader
	// Capabilities reports which optional kinds, those of CRDs, the cluster has.
	Capabilities *Capabilities
	// Now is the clock.
	Now func() time.Time
	// RefusalInterval is the time after which a refused object is tried again. If the object's
	// wanted content has changed, the next pass tries it at once.
	RefusalInterval time.Duration
	// OptionalInterval is the time between comparisons of an object of an optional kind with the
	// live object. Each comparison is an API call, because optional kinds are not cached.
	OptionalInterval time.Duration
}

// Applier applies the objects of RelayPools. Passes of different RelayPools may run
// concurrently; those of one RelayPool run one after the other.
type Applier struct {
	options Options

	mutex  sync.Mutex
	states map[types.NamespacedName]*poolState
}

// New makes an Applier. All options but the intervals are required.
func New(options Options) (*Applier, error) {
	var missing []error
	for name, absent := range map[string]bool{
		"Client": options.Client == nil, "Live": options.Live == nil,
		"Capabilities": options.Capabilities == nil, "Now": options.Now == nil,
	} {
		if absent {
			missing = append(missing, fmt.Errorf("apply: option %s is not set", name))
		}
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	if options.RefusalInterval == 0 {
		options.RefusalInterval = DefaultRefusalInterval
	}
	if options.OptionalInterval == 0 {
		options.OptionalInterval = DefaultOptionalInterval
	}
	return &Applier{options: options, states: map[types.NamespacedName]*poolState{}}, nil
}

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

// Forget drops the state of a deleted RelayPool.
func (a *Applier) Forget(key types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.states, key)
}

// stateOf returns what the Applier remembers of owner's objects from earlier passes. It
// forgets an earlier RelayPool with the same name.
func (a *Applier) stateOf(owner *v1alpha1.RelayPool) *poolState {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	key := types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
	state := a.states[key]
	if state == nil || state.owner != owner.UID {
		state = &poolState{owner: owner.UID, objects: map[Ref]*entry{}, emptyKinds: map[schema.GroupVersionKind]bool{}}
		a.states[key] = state
	}
	return state
}

// Option changes one pass.
type Option func(*pass)

// IfDeploymentVersion guards the Deployment's replicas: a write that sets them fails with a
// conflict if the Deployment no longer has this resource version. It is for a plan that contains
// the live number of replicas, because that number may have changed since the plan was made.
func IfDeploymentVersion(resourceVersion string) Option {
	return func(p *pass) { p.deploymentVersion = resourceVersion }
}
