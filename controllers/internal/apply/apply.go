// Package apply writes what was planned: it makes the objects of a RelayPool
// what the builders say, by server-side apply, and deletes those that are no
// longer wanted.
//
// It never touches an object that belongs to somebody else, writes nothing when
// nothing would change, and goes on with the other objects when one is refused.
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

// The field owners. FieldOwner owns all that the builders name;
// HandOverFieldOwner holds a Deployment's replicas while they change hands.
const (
	FieldOwner         = "relaypool-operator"
	HandOverFieldOwner = "relaypool-operator-handover"
)

// Defaults of Options.
const (
	DefaultCapabilityInterval = 30 * time.Second
	DefaultRefusalInterval    = time.Minute
	DefaultOptionalInterval   = time.Minute
)

// How often an object is repaired: some times at once, and slowly from then on,
// so that a fight with another writer does not load the API server.
const (
	repairBurst    = 5
	repairInterval = 10 * time.Second
)

// goneInterval is how soon to look again whether an object has gone whose kind
// is not watched.
const goneInterval = 5 * time.Second

// Options is what an Applier needs. Durations of 0 take their defaults.
type Options struct {
	// Client writes, and reads objects of the fixed kinds from a cache that may
	// be limited to objects with the label of their pool. The cache must keep
	// managed fields; CacheTransform drops what is not needed of them.
	Client client.Client
	// Live reads from the API server: objects that the cache does not have, and
	// optional kinds.
	Live client.Reader
	// Capabilities tells which optional kinds the cluster has.
	Capabilities *Capabilities
	// Now is the clock.
	Now func() time.Time
	// RefusalInterval is how long a refused object is left alone while what is
	// wanted of it stays the same.
	RefusalInterval time.Duration
	// OptionalInterval is how often objects of optional kinds are compared with
	// what is live; no cache holds them.
	OptionalInterval time.Duration
}

// Applier applies the objects of RelayPools. It is safe for several RelayPools
// at once; passes of one RelayPool follow one another.
type Applier struct {
	options Options

	mutex  sync.Mutex
	memory map[types.NamespacedName]*memory
}

// New makes an Applier. It refuses options that lack a collaborator.
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
	return &Applier{options: options, memory: map[types.NamespacedName]*memory{}}, nil
}

// Ref names an object in the RelayPool's namespace.
type Ref struct {
	Kind schema.GroupVersionKind
	Name string
}

// String is the kind and the name, as people write them: Deployment demo.
func (r Ref) String() string { return r.Kind.Kind + " " + r.Name }

// Refusal is an object that the API server refused: invalid, or forbidden by
// admission or a quota.
type Refusal struct {
	Ref
	// Reason is the API's own: Invalid, Forbidden.
	Reason string
	// Message is the API's own, without values of fields and without figures
	// that change by themselves. At most 512 characters.
	Message string
}

// Result is what a pass did and found. Each object is in at most one of the
// lists; one that was right already is in none.
type Result struct {
	// Applied were made, or changed because what is wanted changed.
	Applied []Ref
	// Repaired had been changed by somebody else, and were changed back.
	Repaired []Ref
	// Pruned were deleted because they are no longer wanted.
	Pruned []Ref
	// Foreign are there and belong to somebody else; they were left alone.
	Foreign []Ref
	// Withheld were not made or changed, because their pods would run as somebody
	// else's service account or with somebody else's configuration: see Foreign.
	Withheld []Ref
	// Contested are changed by somebody else again and again; the next repair is
	// put off.
	Contested []Ref
	// Waiting are being deleted, or wait for an object that is; they are made
	// when it has gone.
	Waiting []Ref
	// Refused were refused by the API server.
	Refused []Refusal
	// MissingKinds are wanted optional kinds that the cluster does not have.
	MissingKinds []schema.GroupVersionKind
	// HandedOver tells that the Deployment's replicas were left to the autoscaler
	// in this pass, at the count that was live.
	HandedOver bool
	// RetryAfter is when another pass has something to do that no event will
	// announce; 0 when there is nothing of that kind.
	RetryAfter time.Duration
}

// Changed tells whether the pass wrote anything.
func (r Result) Changed() bool {
	return len(r.Applied)+len(r.Repaired)+len(r.Pruned) > 0 || r.HandedOver
}

// retry brings RetryAfter forward.
func (r *Result) retry(after time.Duration) {
	if after > 0 && (r.RetryAfter == 0 || after < r.RetryAfter) {
		r.RetryAfter = after
	}
}

// Forget drops what is remembered of a RelayPool that is gone.
func (a *Applier) Forget(key types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.memory, key)
}

// remembered gives the memory of owner; one of an earlier RelayPool of the name
// says nothing.
func (a *Applier) remembered(owner *v1alpha1.RelayPool) *memory {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	key := types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
	m := a.memory[key]
	if m == nil || m.owner != owner.UID {
		m = &memory{owner: owner.UID, objects: map[Ref]*entry{}, clean: map[schema.GroupVersionKind]bool{}}
		a.memory[key] = m
	}
	return m
}

// Option changes one pass.
type Option func(*pass)

// Keep says which rotation Jobs stay although they are not wanted. Without it
// all of them do.
func Keep(keep func(Ref) bool) Option {
	return func(p *pass) { p.keep = keep }
}

// DeploymentAt ties the Deployment to a resource version: it is applied only
// while it has that one, and the error is a conflict otherwise. For plans that
// copied the live count of replicas, which somebody may have changed since.
func DeploymentAt(resourceVersion string) Option {
	return func(p *pass) { p.deploymentAt = resourceVersion }
}
