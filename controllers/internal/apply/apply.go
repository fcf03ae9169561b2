// Package apply writes a plan: it applies the objects of a RelayPool as the
// builders made them, by server-side apply, and deletes objects that are no longer
// wanted.
//
// It never changes a foreign object, writes nothing when nothing would change,
// and continues with the other objects when one is refused.
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

// These are the field owners. FieldOwner owns all fields that the builders set;
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
	// Client writes. It reads the kinds of OwnedTypes from a cache, which may be limited
	// to objects with their pool's label. The cache must keep the managed fields of the
	// spec. CacheTransform keeps these and drops the others.
	Client client.Client
	// Live reads from the API server: objects that the cache does not have, and
	// objects of optional kinds.
	Live client.Reader
	// Capabilities reports which optional kinds, those of CRDs, the cluster has.
	Capabilities *Capabilities
	// Now is the clock.
	Now func() time.Time
	// RefusalInterval is how long a refused object is not retried while its wanted
	// content stays the same.
	RefusalInterval time.Duration
	// OptionalInterval is how often objects of optional kinds, which are not
	// cached, are compared with the live ones.
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

// Refusal is an object that the API server refused: invalid, or forbidden by
// admission or a quota.
type Refusal struct {
	Ref
	// Reason is the API server's reason: Invalid, Forbidden.
	Reason string
	// Message is the API server's message, without values of fields and without
	// the usage figures of a quota. At most 512 characters.
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
	// Withheld lists objects that were neither created nor changed: their pods would use
	// a foreign ServiceAccount or ConfigMap, which Foreign lists.
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
	// HandedOver reports that this pass handed the Deployment's replicas over to the
	// autoscaler, at the live count.
	HandedOver bool
	// RetryAfter is how soon another pass must run, because no watch event will start
	// it; 0 when none must.
	RetryAfter time.Duration
}

// Changed reports whether the pass wrote anything.
func (r Result) Changed() bool {
	return len(r.Applied)+len(r.Repaired)+len(r.Pruned) > 0 || r.HandedOver
}

// retry sets RetryAfter to delay if that is sooner.
func (r *Result) retry(delay time.Duration) {
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

// DeploymentAt guards the Deployment's replicas: a write that sets them fails with a
// conflict if the Deployment no longer has this resource version. It is for plans that
// copied the live number of replicas, which may have changed since.
func DeploymentAt(resourceVersion string) Option {
	return func(p *pass) { p.deploymentAt = resourceVersion }
}
