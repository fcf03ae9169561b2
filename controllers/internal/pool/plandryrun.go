package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// PreviewOptions is what a Previewer needs; all fields but Settings are required.
type PreviewOptions struct {
	// Client reads from the API server directly. All its writes are dry runs.
	Client client.Client
	// Discovery asks which optional kinds the cluster has.
	Discovery apply.Discovery
	// Now is the clock.
	Now      func() time.Time
	Settings Settings
}

// Previewer computes what the operator would apply for RelayPools in a cluster, without
// changing the cluster. It reads what the operator reads from the API server, but neither the
// chain nor backlogs. It assumes that pools are initialised.
type Previewer struct {
	PreviewOptions
	capabilities *apply.Capabilities
}

// Preview is the effect of applying one RelayPool.
type Preview struct {
	// New: the cluster has no RelayPool of this name.
	New bool
	// Written are the applied contents of the objects that would be made or changed. An object
	// that would be made has no uid.
	Written []*unstructured.Unstructured
	// Kept is how many objects would not change.
	Kept int
	// Result has the objects that would be deleted or refused, and foreign objects.
	Result apply.Result
	// Generated names the Secrets in which keys would be generated.
	Generated []string
	// Problems are missing, invalid or unreadable objects that the spec names. While
	// there are any, the operator makes and changes no object of the fleet.
	Problems []string
}

// Clean reports whether everything declared would be applied.
func (p *Preview) Clean() bool {
	return len(p.Problems)+len(p.Result.Foreign)+len(p.Result.Refused) == 0
}

// NewPreviewer makes a Previewer. It returns an error if a required option is missing.
func NewPreviewer(o PreviewOptions) (*Previewer, error) {
	if o.Client == nil || o.Discovery == nil || o.Now == nil {
		return nil, errors.New("make previewer: Client, Discovery and Now are required")
	}
	capabilities, err := apply.NewCapabilities(o.Discovery, o.Now, 0)
	if err != nil {
		return nil, err
	}
	return &Previewer{o, capabilities}, nil
}

// Preview computes the effect of applying the declared RelayPool. An error means that the API
// server or the operator would refuse the RelayPool, or that the cluster cannot be read.
func (v *Previewer) Preview(ctx context.Context, declared *v1alpha1.RelayPool) (*Preview, error) {
	out := &Preview{}
	pool, err := v.admit(ctx, declared, out)
	if err != nil {
		return nil, err
	}
	if specFaults, _ := v.Settings.faults(pool); len(specFaults) > 0 {
		return nil, fmt.Errorf("RelayPool %s would not be accepted: %s", pool.Name, joinFirst(specFaults, len(specFaults)))
	}
	if pool.Status.InitialisedAt == nil {
		pool.Status.InitialisedAt = &metav1.Time{Time: v.Now()}
	}
	r, err := v.reconciler()
	if err != nil {
		return nil, err
	}
	facts, err := r.observe(ctx, pool)
	if err != nil {
		return nil, err
	}
	// Errors of other parts are reported as problems or left out, so that a user who is not
	// allowed to read Secrets still gets a preview.
	if err := errors.Join(facts.Unread[PartFleet], facts.Unread[PartCapabilities]); err != nil {
		return nil, err
	}
	plan := Decide(facts, v.Settings)
	out.addProblems(facts, &plan)
	objects, err := v.objects(facts, &plan)
	if err != nil {
		return nil, err
	}
	return out, v.apply(ctx, pool, objects, out)
}

// admit returns the RelayPool as the API server would store it, with its present
// status.
func (v *Previewer) admit(ctx context.Context, declared *v1alpha1.RelayPool, out *Preview) (*v1alpha1.RelayPool, error) {
	pool := &v1alpha1.RelayPool{}
	err := v.Client.Get(ctx, client.ObjectKeyFromObject(declared), pool)
	switch {
	case apierrors.IsNotFound(err):
		out.New = true
		pool = declared.DeepCopy()
		err = v.Client.Create(ctx, pool, client.DryRunAll)
	case meta.IsNoMatchError(err):
		return nil, errors.New("the cluster lacks the CustomResourceDefinition of RelayPool: install it with kubectl apply --server-side -f config/crd, or with the chart")
	case err == nil:
		status := pool.Status
		pool.Spec = *declared.Spec.DeepCopy()
		err = v.Client.Update(ctx, pool, client.DryRunAll)
		pool.Status = status
	}
	if err != nil {
		return nil, fmt.Errorf("the cluster would refuse RelayPool %s: %w", declared.Name, err)
	}
	return pool, nil
}

// reconciler makes a Reconciler that only observes.
func (v *Previewer) reconciler() (*Reconciler, error) {
	// Everything is read once, so the jitter of intervals does not matter.
	half := func() float64 { return 0.5 }
	references, err := refs.NewResolver(refs.Options{Reader: v.Client, Now: v.Now, Random: half, Policy: v.Settings.Tenants})
	if err != nil {
		return nil, err
	}
	observer, err := keys.NewObserver(keys.ObserverOptions{Reader: v.Client, Now: v.Now, Random: half})
	if err != nil {
		return nil, err
	}
	return &Reconciler{Options: Options{
		Client: v.Client, Live: v.Client, References: references, KeyObserver: observer, Capabilities: v.capabilities,
		Watcher: noChain{}, Backlogs: noBacklog{}, Now: v.Now, Random: half, Settings: v.Settings,
	}}, nil
}

// addProblems adds the Secrets to be generated, and the problems that the condition
// SecretsResolved would report.
func (p *Preview) addProblems(f *Facts, plan *Plan) {
	for _, k := range plan.Keys.Create {
		p.Generated = append(p.Generated, k.Secret)
	}
	all := slices.Clone(plan.Problems)
	for _, problem := range plan.Keys.Problems {
		if isSecretsReason(problem.Reason) {
			all = append(all, problem)
		}
	}
	p.Problems = messages(all)
	for _, u := range f.References.Unread {
		p.Problems = append(p.Problems, u.Err.Error())
	}
	if err := f.Unread[PartKeys]; err != nil {
		p.Problems = append(p.Problems, err.Error())
	}
}

// objects returns the plan's objects. If references or keys are missing, the plan has none;
// then the result is the objects that a complete plan would have.
func (v *Previewer) objects(f *Facts, plan *Plan) ([]build.Object, error) {
	if plan.Deploy {
		return plan.Objects, nil
	}
	return Render(f.Pool, RenderOptions{Settings: v.Settings, Capabilities: f.Capabilities})
}

// apply applies the objects to the API server as a dry run.
func (v *Previewer) apply(ctx context.Context, pool *v1alpha1.RelayPool, objects []build.Object, out *Preview) error {
	dryRun := &applyRecorder{Client: client.NewDryRunClient(v.Client)}
	applier, err := apply.New(apply.Options{Client: dryRun, Live: v.Client, Capabilities: v.capabilities, Now: v.Now})
	if err != nil {
		return err
	}
	if out.Result, err = applier.Apply(ctx, pool, objects); err != nil {
		return err
	}
	out.Written = dryRun.accepted
	out.Kept = len(objects) - len(out.Written) - len(out.Result.Foreign) - len(out.Result.Refused) - len(out.Result.Waiting) - len(out.Result.MissingKinds) - len(out.Result.Withheld)
	if out.New {
		for _, object := range out.Written {
			object.SetOwnerReferences(nil) // the owner's uid exists only in the dry run
		}
	}
	return nil
}

// applyRecorder is a client that records which objects the API server accepts.
type applyRecorder struct {
	client.Client
	accepted []*unstructured.Unstructured
}

// Apply applies an object as a dry run.
func (r *applyRecorder) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	content, err := json.Marshal(config) // before the answer overwrites config
	if err != nil {
		return fmt.Errorf("write as JSON: %w", err)
	}
	if err := r.Client.Apply(ctx, config, opts...); err != nil {
		return err
	}
	options := client.ApplyOptions{}
	options.ApplyOptions(opts)
	if options.FieldManager != apply.FieldOwner {
		return nil // the write hands over spec.replicas
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, object); err != nil {
		return fmt.Errorf("read as an object: %w", err)
	}
	r.accepted = append(r.accepted, object)
	return nil
}

// noChain is a Watcher without readings.
type noChain struct{}

// Set does nothing.
func (noChain) Set(types.NamespacedName, chainwatch.Query) {}

// Forget does nothing.
func (noChain) Forget(types.NamespacedName) {}

// Reading returns no reading.
func (noChain) Reading(types.NamespacedName) (chainwatch.Reading, bool) {
	return chainwatch.Reading{}, false
}

// Events returns no channel.
func (noChain) Events() <-chan event.GenericEvent { return nil }

// noBacklog is a Backlogs without readings.
type noBacklog struct{}

// Backlog returns no reading.
func (noBacklog) Backlog(types.NamespacedName, []string) Backlog { return Backlog{} }

// Forget does nothing.
func (noBacklog) Forget(types.NamespacedName) {}

// Events returns no channel.
func (noBacklog) Events() <-chan event.GenericEvent { return nil }
