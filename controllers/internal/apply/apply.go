// Package apply carries out a plan: it writes the objects of a RelayPool by server-side apply, as
// package build made them, and deletes the objects that are no longer wanted.
//
// It never changes an object of another owner, and writes nothing if nothing would change. If one
// object is refused, it continues with the others.
package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
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

// goneInterval is the time after which another pass checks an object that is being deleted, or a
// kind whose CRD has vanished. Not every kind has a watch that reports these changes.
const goneInterval = 5 * time.Second

// pass is one call of Apply for one RelayPool.
type pass struct {
	*Applier
	owner             *v1alpha1.RelayPool
	state             *poolState
	deploymentVersion string
	result            Result
}

// Apply first deletes those of the owner's objects that are no longer wanted, and then writes the
// wanted objects in the given order. If one object fails, Apply continues with the others. The
// returned error joins the failures that a retry may resolve. If such a failure is a conflict
// (apierrors.IsConflict), another writer changed the object at the same time. Refusals are in the
// Result, not in the error.
func (a *Applier) Apply(ctx context.Context, owner *v1alpha1.RelayPool, objects []build.Object, opts ...Option) (Result, error) {
	p := &pass{Applier: a, owner: owner, state: a.stateOf(owner)}
	for _, o := range opts {
		o(p)
	}
	p.state.mutex.Lock()
	defer p.state.mutex.Unlock()

	wanted := map[Ref]bool{}
	for _, o := range objects {
		wanted[Ref{o.Kind, o.Name}] = true
	}
	// Prune first, because an autoscaler of one kind must be deleted before an autoscaler of the
	// other kind is created.
	errs := []error{p.prune(ctx, wanted)}
	for _, o := range objects {
		ref := Ref{o.Kind, o.Name}
		if p.withholds(ref) {
			p.result.Withheld = append(p.result.Withheld, ref)
			continue
		}
		if err := p.applyObject(ctx, ref, o); err != nil {
			errs = append(errs, fmt.Errorf("apply %s: %w", ref, err))
		}
	}
	return p.result, errors.Join(errs...)
}

func (p *pass) applyObject(ctx context.Context, ref Ref, o build.Object) error {
	if isOptionalKind(ref.Kind) {
		has, err := p.options.Capabilities.Has(ctx, ref.Kind)
		if err != nil {
			return err
		}
		if !has {
			p.markMissing(ref)
			return nil
		}
	}
	wanted, err := p.content(ref, o)
	if err != nil {
		return err
	}
	sum, err := digestOf(wanted)
	if err != nil {
		return err
	}
	entry := p.state.entry(ref)
	if p.recentlyCompared(ref, entry, sum) {
		return nil
	}
	live, err := p.find(ctx, ref)
	if err != nil {
		return p.recordMissingKind(ref, err)
	}
	if live != nil && entry.isAhead(live.uid(), live.version()) && !entry.wantedUnchanged(sum) {
		// The cache lags behind our last write, so it might not show that we own the replicas. We
		// would then stop setting the replicas without a handover.
		if live, err = p.read(ctx, ref); err != nil {
			return p.recordMissingKind(ref, err)
		}
	}
	entry.checkedAt = p.options.Now()
	if allowed, err := p.mayWrite(ctx, ref, live); err != nil || !allowed {
		return err
	}
	return p.writeIfDifferent(ctx, target{ref: ref, desired: wanted, digest: sum, entry: entry, live: live})
}

func (p *pass) requeue(ref Ref) {
	p.result.Waiting = append(p.result.Waiting, ref)
	p.result.retryWithin(goneInterval)
}
