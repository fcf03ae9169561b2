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

// PreviewOptions are what a Previewer needs; all of it but Settings is required.
type PreviewOptions struct {
	// Client reads from the API server itself. All its writes are dry runs.
	Client client.Client
	// Discovery asks which optional kinds the cluster has.
	Discovery apply.Discovery
	// Now is the clock.
	Now      func() time.Time
	Settings Settings
}

// Previewer computes what the operator would make of RelayPools in a cluster,
// without a change to it. It reads everything as the operator does, except the
// chain: pools count as initialised.
type Previewer struct {
	PreviewOptions
	capabilities *apply.Capabilities
}

// Preview is what would become of one RelayPool.
type Preview struct {
	// New: the cluster has no RelayPool of the name.
	New bool
	// Written are the objects that would be made or changed, as they would be
	// applied; those that would be made have no uid.
	Written []*unstructured.Unstructured
	// Kept is how many objects are right already.
	Kept int
	// Result has the objects that would be deleted or refused, and foreign ones.
	Result apply.Result
	// Generated names the Secrets in which keys would be made.
	Generated []string
	// Problems say what is wrong with what the spec names, or could not be read.
	// While there are any, the operator makes and changes nothing of the fleet.
	Problems []string
}

// Clean reports whether everything declared would be applied.
func (p *Preview) Clean() bool {
	return len(p.Problems)+len(p.Result.Foreign)+len(p.Result.Refused) == 0
}

// NewPreviewer makes a Previewer. It refuses options that lack a collaborator.
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

// Preview previews one RelayPool as it is declared. The error is that the API
// server would not take it, or cannot be asked.
func (v *Previewer) Preview(ctx context.Context, declared *v1alpha1.RelayPool) (*Preview, error) {
	out := &Preview{}
	pool, err := v.admitted(ctx, declared, out)
	if err != nil {
		return nil, err
	}
	if wrong, _ := v.Settings.faults(&pool.Spec); len(wrong) > 0 {
		return nil, fmt.Errorf("RelayPool %s would not be accepted: %s", pool.Name, sentences(wrong, len(wrong)))
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
	// Who may not read the Secrets has a preview all the same.
	if err := errors.Join(facts.Unread[PartFleet], facts.Unread[PartCapabilities]); err != nil {
		return nil, err
	}
	plan := Decide(facts, v.Settings)
	out.problems(facts, &plan)
	objects, err := v.objects(facts, &plan)
	if err != nil {
		return nil, err
	}
	return out, v.apply(ctx, pool, objects, out)
}

// admitted is the RelayPool as the API server would keep it, with the status that
// it has.
func (v *Previewer) admitted(ctx context.Context, declared *v1alpha1.RelayPool, out *Preview) (*v1alpha1.RelayPool, error) {
	pool := &v1alpha1.RelayPool{}
	err := v.Client.Get(ctx, client.ObjectKeyFromObject(declared), pool)
	switch {
	case apierrors.IsNotFound(err):
		out.New = true
		pool = declared.DeepCopy()
		err = v.Client.Create(ctx, pool, client.DryRunAll)
	case meta.IsNoMatchError(err):
		return nil, errors.New("the cluster knows no RelayPool: install the resource with kubectl apply --server-side -f config/crd, or by the chart")
	case err == nil:
		status := pool.Status
		pool.Spec = *declared.Spec.DeepCopy()
		err = v.Client.Update(ctx, pool, client.DryRunAll)
		pool.Status = status
	}
	if err != nil {
		return nil, fmt.Errorf("the cluster would not take RelayPool %s: %w", declared.Name, err)
	}
	return pool, nil
}

// reconciler is one that can only observe.
func (v *Previewer) reconciler() (*Reconciler, error) {
	// Everything is read once: no interval is ever over.
	evenly := func() float64 { return 0.5 }
	references, err := refs.NewResolver(refs.Options{Reader: v.Client, Now: v.Now, Random: evenly, Policy: v.Settings.Tenants})
	if err != nil {
		return nil, err
	}
	observer, err := keys.NewObserver(keys.ObserverOptions{Reader: v.Client, Now: v.Now, Random: evenly})
	if err != nil {
		return nil, err
	}
	return &Reconciler{Options: Options{
		Client: v.Client, Live: v.Client, References: references, KeyObserver: observer, Capabilities: v.capabilities,
		Watcher: noChain{}, Backlogs: noBacklog{}, Now: v.Now, Random: evenly, Settings: v.Settings,
	}}, nil
}

// problems are what the condition SecretsResolved would speak of.
func (p *Preview) problems(f *Facts, plan *Plan) {
	for _, k := range plan.Keys.Create {
		p.Generated = append(p.Generated, k.Secret)
	}
	all := slices.Clone(plan.Problems)
	for _, problem := range plan.Keys.Problems {
		if ofSecrets(problem.Reason) {
			all = append(all, problem)
		}
	}
	p.Problems = texts(all)
	for _, u := range f.References.Unread {
		p.Problems = append(p.Problems, u.Err.Error())
	}
	if err := f.Unread[PartKeys]; err != nil {
		p.Problems = append(p.Problems, err.Error())
	}
}

// objects returns the plan's objects or, without a plan because references or
// keys are missing, those that it would have with them.
func (v *Previewer) objects(f *Facts, plan *Plan) ([]build.Object, error) {
	if plan.Deploy {
		return plan.Objects, nil
	}
	return Render(f.Pool, RenderOptions{Settings: v.Settings, Capabilities: f.Capabilities})
}

// apply has the API server try the objects.
func (v *Previewer) apply(ctx context.Context, pool *v1alpha1.RelayPool, objects []build.Object, out *Preview) error {
	tried := &recorder{Client: client.NewDryRunClient(v.Client)}
	applier, err := apply.New(apply.Options{Client: tried, Live: v.Client, Capabilities: v.capabilities, Now: v.Now})
	if err != nil {
		return err
	}
	if out.Result, err = applier.Apply(ctx, pool, objects); err != nil {
		return err
	}
	out.Written = tried.taken
	out.Kept = len(objects) - len(out.Written) - len(out.Result.Foreign) - len(out.Result.Refused) - len(out.Result.Waiting) - len(out.Result.MissingKinds) - len(out.Result.Withheld)
	if out.New {
		for _, object := range out.Written {
			object.SetOwnerReferences(nil) // the owner's uid was made for the trial
		}
	}
	return nil
}

// recorder notes which objects the API server takes.
type recorder struct {
	client.Client
	taken []*unstructured.Unstructured
}

// Apply tries an object.
func (r *recorder) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	content, err := json.Marshal(config) // before the answer takes its place
	if err != nil {
		return fmt.Errorf("write as JSON: %w", err)
	}
	if err := r.Client.Apply(ctx, config, opts...); err != nil {
		return err
	}
	options := client.ApplyOptions{}
	options.ApplyOptions(opts)
	if options.FieldManager != apply.FieldOwner {
		return nil // the hand-over of replicas
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, object); err != nil {
		return fmt.Errorf("read as an object: %w", err)
	}
	r.taken = append(r.taken, object)
	return nil
}

// noChain has read no chain.
type noChain struct{}

// Set does nothing.
func (noChain) Set(types.NamespacedName, chainwatch.Query) {}

// Forget does nothing.
func (noChain) Forget(types.NamespacedName) {}

// Reading returns none.
func (noChain) Reading(types.NamespacedName) (chainwatch.Reading, bool) {
	return chainwatch.Reading{}, false
}

// Events returns none.
func (noChain) Events() <-chan event.GenericEvent { return nil }

// noBacklog has asked no pod.
type noBacklog struct{}

// Backlog returns none.
func (noBacklog) Backlog(types.NamespacedName, []string) Backlog { return Backlog{} }

// Forget does nothing.
func (noBacklog) Forget(types.NamespacedName) {}

// Events returns none.
func (noBacklog) Events() <-chan event.GenericEvent { return nil }
