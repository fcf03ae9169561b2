package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// References reads the Secrets and ConfigMaps that RelayPools name. refs.Resolver
// implements it.
type References interface {
	Resolve(ctx context.Context, pool *v1alpha1.RelayPool) (refs.Facts, error)
	Value(ctx context.Context, pool types.NamespacedName, ref v1alpha1.SecretKeyReference) (string, error)
	Certificates(ctx context.Context, pool types.NamespacedName, from *v1alpha1.CertificatesSource) (string, error)
	Forget(pool types.NamespacedName)
}

// KeyObserver reads generated keys. keys.Observer implements it.
type KeyObserver interface {
	Observe(ctx context.Context, pool *v1alpha1.RelayPool) (keys.Facts, error)
	Forget(pool types.NamespacedName)
}

// KeyWriter carries out the plan for the keys. keys.Writer implements it.
type KeyWriter interface {
	Apply(ctx context.Context, pool *v1alpha1.RelayPool, plan keys.Plan, job runtime.ApplyConfiguration) error
}

// Applier applies objects. apply.Applier implements it.
type Applier interface {
	Apply(ctx context.Context, owner *v1alpha1.RelayPool, objects []build.Object, opts ...apply.Option) (apply.Result, error)
	Forget(pool types.NamespacedName)
}

// Capabilities reports which optional kinds the cluster has. apply.Capabilities implements
// it.
type Capabilities interface {
	ForBuild(ctx context.Context) (build.Capabilities, error)
}

// Watcher reads the chain concurrently with passes. chainwatch.Watcher implements it.
type Watcher interface {
	Set(pool types.NamespacedName, q chainwatch.Query)
	Forget(pool types.NamespacedName)
	Reading(pool types.NamespacedName) (chainwatch.Reading, bool)
	Events() <-chan event.GenericEvent
}

// Backlogs reads queues concurrently with passes. Poller implements it.
type Backlogs interface {
	Backlog(pool types.NamespacedName, ips []string) Backlog
	Forget(pool types.NamespacedName)
	Events() <-chan event.GenericEvent
}

// Options is what a Reconciler needs; all fields but Settings are required.
type Options struct {
	// Client reads from the cache, and writes to the API server.
	Client client.Client
	// Live reads from the API server, without the cache.
	Live         client.Reader
	References   References
	KeyObserver  KeyObserver
	KeyWriter    KeyWriter
	Applier      Applier
	Capabilities Capabilities
	Watcher      Watcher
	Backlogs     Backlogs
	Recorder     events.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// Random returns numbers from 0 up to 1, for the jitter of intervals.
	Random   func() float64
	Settings Settings
}

// Reconciler makes and maintains the fleets that RelayPools declare.
type Reconciler struct {
	Options
	keyParser parser
	// replacedVersions are the resource versions that the last status writes replaced.
	replacedVersions replacedVersions
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// New makes a Reconciler. It returns an error if a required option is missing.
func New(o Options) (*Reconciler, error) {
	var missing []error
	for _, option := range []struct {
		name   string
		absent bool
	}{
		{"Client", o.Client == nil}, {"Live", o.Live == nil}, {"References", o.References == nil},
		{"KeyObserver", o.KeyObserver == nil}, {"KeyWriter", o.KeyWriter == nil}, {"Applier", o.Applier == nil},
		{"Capabilities", o.Capabilities == nil}, {"Watcher", o.Watcher == nil}, {"Backlogs", o.Backlogs == nil},
		{"Recorder", o.Recorder == nil}, {"Now", o.Now == nil}, {"Random", o.Random == nil},
	} {
		if option.absent {
			missing = append(missing, fmt.Errorf("make reconciler of RelayPools: option %s is not set", option.name))
		}
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	return &Reconciler{Options: o}, nil
}

// Reconcile does one pass of one RelayPool. After an error, controller-runtime counts the failure,
// and calls Reconcile again after a wait that grows with each failure.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcileOne(ctx, req)
	switch {
	case err == nil:
		return result, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctrl.Result{}, nil // the process ends: the next leader reconciles everything
	case apply.OnlyConflicts(err): // another client wrote meanwhile
		return ctrl.Result{RequeueAfter: time.Duration(float64(minRequeue) * (0.5 + r.Random()))}, nil
	default:
		return ctrl.Result{}, err
	}
}

// reconcileOne handles one RelayPool: in use, being deleted, or already deleted.
func (r *Reconciler) reconcileOne(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pool v1alpha1.RelayPool
	if err := r.Client.Get(ctx, req.NamespacedName, &pool); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("read RelayPool: %w", err)
	}
	// Deletion comes before anything that a missing dependency could delay.
	if pool.DeletionTimestamp != nil {
		return ctrl.Result{}, r.finalize(ctx, &pool)
	}
	if r.replacedVersions.isReplaced(req.NamespacedName, pool.ResourceVersion, r.Now()) {
		log.FromContext(ctx).V(1).Info("Waiting for the cache: it has the RelayPool as it was before the last write of its status")
		return ctrl.Result{RequeueAfter: minRequeue}, nil // or earlier, when the cache is updated
	}
	if err := r.addFinalizer(ctx, &pool); err != nil {
		return ctrl.Result{}, err
	}
	return r.pass(ctx, &pool)
}

// pass observes, decides, applies and reports.
func (r *Reconciler) pass(ctx context.Context, pool *v1alpha1.RelayPool) (ctrl.Result, error) {
	facts, err := r.observe(ctx, pool)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := Decide(facts, r.Settings)
	r.watch(facts, &plan)
	outcome, applyErr := r.apply(ctx, facts, &plan)
	status := Report(facts, &plan, &outcome)
	statusErr := r.write(ctx, facts, &plan, &status)
	if err := errors.Join(facts.err(), applyErr, statusErr); err != nil {
		return ctrl.Result{}, err // retried with backoff: with an error, RequeueAfter has no effect
	}
	return ctrl.Result{RequeueAfter: r.requeueAfter(facts, &plan, &outcome, &status)}, nil
}

// watch gives the plan's query to the watcher. While the keys are unknown, the new query
// has no payers, and the watcher keeps the previous query: with the new query it would
// drop the balances and their history.
func (r *Reconciler) watch(f *Facts, p *Plan) {
	if len(p.Query.Endpoints) == 0 || !f.KeysKnown && len(f.Chain.Payers) > 0 {
		return
	}
	r.Watcher.Set(client.ObjectKeyFromObject(f.Pool), p.Query)
}

// apply carries out the plan, keys first. A pass that writes keys writes nothing else, and the
// next pass continues with the keys that it reads. If the API server refuses the Job of a
// rotation, the rotation stops, but the fleet is still applied.
func (r *Reconciler) apply(ctx context.Context, f *Facts, p *Plan) (Outcome, error) {
	var o Outcome
	if p.StatusOnly {
		return o, nil
	}
	refusals, keysErr := r.applyKeys(ctx, f, p)
	if !p.Deploy || p.Keys.Writes() {
		o.Failed = keysErr != nil
		o.addRefusals(refusals)
		return o, keysErr
	}
	var options []apply.Option
	if p.ReplicasDerived && f.Fleet.Deployment != nil {
		options = append(options, apply.IfDeploymentVersion(f.Fleet.Deployment.ResourceVersion))
	}
	result, err := r.Applier.Apply(ctx, f.Pool, p.Objects, options...)
	o = Outcome{Result: result, Applied: true, Failed: err != nil || keysErr != nil}
	o.addRefusals(refusals)
	logResult(ctx, &result)
	r.emitApplied(f.Pool, &result)
	return o, errors.Join(keysErr, err)
}

// logResult logs which objects were applied, repaired and deleted.
func logResult(ctx context.Context, result *apply.Result) {
	l := log.FromContext(ctx)
	for _, ref := range result.Applied {
		l.Info("Applied object", "kind", ref.Kind.Kind, "object", ref.Name)
	}
	for _, ref := range result.Repaired {
		l.Info("object repaired after a foreign change", "kind", ref.Kind.Kind, "object", ref.Name)
	}
	for _, ref := range result.Pruned {
		l.Info("Deleted object that is no longer wanted", "kind", ref.Kind.Kind, "object", ref.Name)
	}
}

// forget drops the state of a deleted RelayPool.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.Watcher.Forget(key)
	r.Backlogs.Forget(key)
	r.References.Forget(key)
	r.KeyObserver.Forget(key)
	r.Applier.Forget(key)
	r.replacedVersions.forget(key)
}
