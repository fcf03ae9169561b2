package apply

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

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

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
		if ref.Kind == build.KindDeployment && slices.ContainsFunc(p.result.Foreign, usedByPods) {
			p.result.Withheld = append(p.result.Withheld, ref)
			continue
		}
		if err := p.applyObject(ctx, ref, o); err != nil {
			errs = append(errs, fmt.Errorf("apply %s: %w", ref, err))
		}
	}
	return p.result, errors.Join(errs...)
}

// usedByPods reports whether the fleet's pods use the object. If such an object belongs to another
// owner, Apply withholds the Deployment. Without this rule, a tenant could name a RelayPool after
// a service account of the namespace, and so run pods as that account.
func usedByPods(ref Ref) bool {
	return ref.Kind == build.KindServiceAccount || ref.Kind == build.KindConfigMap
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

func (p *pass) markMissing(ref Ref) {
	delete(p.state.objects, ref)
	delete(p.state.emptyKinds, ref.Kind)
	if !slices.Contains(p.result.MissingKinds, ref.Kind) {
		p.result.MissingKinds = append(p.result.MissingKinds, ref.Kind)
	}
}

// recordMissingKind handles a kind whose CRD is gone: if err says so, it lists the kind as
// missing and returns nil. It returns any other error unchanged.
func (p *pass) recordMissingKind(ref Ref, err error) error {
	if isOptionalKind(ref.Kind) && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) {
		p.options.Capabilities.Invalidate()
		p.markMissing(ref)
		p.result.retryWithin(goneInterval)
		return nil
	}
	return err
}

// content returns the content to apply: what package build made, with the RelayPool's namespace
// and with the RelayPool as the owner.
func (p *pass) content(ref Ref, o build.Object) (map[string]any, error) {
	raw, err := json.Marshal(o.Config)
	if err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	value, err := decode(raw)
	if err != nil {
		return nil, err
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the builder's configuration is not an object")
	}
	u := unstructured.Unstructured{Object: content}
	if u.GroupVersionKind() != ref.Kind || u.GetName() != ref.Name {
		return nil, fmt.Errorf("the builder's configuration has the kind %s and the name %q", u.GroupVersionKind(), u.GetName())
	}
	u.SetNamespace(p.owner.Namespace)
	u.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(p.owner, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind)),
	})
	return u.Object, nil
}

// canonical returns the wanted content in the form in which the API server stores it. For an
// optional kind, canonical returns wanted unchanged.
func (p *pass) canonical(ref Ref, wanted map[string]any) (map[string]any, error) {
	typed := typedObject(ref.Kind)
	if typed == nil {
		return wanted, nil
	}
	return canonical(wanted, typed)
}

func copyOf(content map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: content}).DeepCopy().Object
}
