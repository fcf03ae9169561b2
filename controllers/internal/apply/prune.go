package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// prune deletes the RelayPool's objects that are not wanted. A failure of one kind does
// not stop the others.
func (p *pass) prune(ctx context.Context, wanted map[Ref]bool) error {
	var errs []error
	for _, kind := range build.Kinds() {
		if err := p.pruneKind(ctx, kind, wanted); err != nil {
			errs = append(errs, fmt.Errorf("prune %s: %w", kind.Kind, err))
		}
	}
	return errors.Join(errs...)
}

func (p *pass) pruneKind(ctx context.Context, kind schema.GroupVersionKind, wanted map[Ref]bool) error {
	if isOptionalKind(kind) {
		return p.pruneOptional(ctx, kind, wanted)
	}
	list := typedList(kind)
	if err := p.options.Client.List(ctx, list, p.selection()...); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	_, err := p.pruneList(ctx, kind, list, wanted)
	return err
}

// pruneOptional prunes a kind that is not cached. Once no object of the kind is left, later
// passes do not list the kind, because each list is an API call.
func (p *pass) pruneOptional(ctx context.Context, kind schema.GroupVersionKind, wanted map[Ref]bool) error {
	for ref := range wanted {
		if ref.Kind == kind {
			delete(p.state.emptyKinds, kind) // it may be there, whatever the answer to its write was
			return nil                       // a RelayPool has one object of the kind at most, and this one is wanted
		}
	}
	has, err := p.options.Capabilities.Has(ctx, kind)
	if err != nil {
		return err
	}
	if !has {
		delete(p.state.emptyKinds, kind)
		return nil
	}
	if p.state.emptyKinds[kind] {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = p.options.Live.List(ctx, list, p.selection()...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		p.options.Capabilities.Invalidate()
		return nil
	}
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	unwanted, err := p.pruneList(ctx, kind, list, wanted)
	p.state.emptyKinds[kind] = err == nil && unwanted == 0
	return err
}

func (p *pass) selection() []client.ListOption {
	return []client.ListOption{client.InNamespace(p.owner.Namespace), client.MatchingLabels{build.LabelPool: p.owner.Name}}
}

// pruneList deletes the unwanted objects of a list, except Jobs, which package keys deletes.
// It returns how many unwanted objects it found, including those being deleted.
func (p *pass) pruneList(ctx context.Context, kind schema.GroupVersionKind, list client.ObjectList, wanted map[Ref]bool) (int, error) {
	unwanted := 0
	var errs []error
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", item)
		}
		ref := Ref{kind, object.GetName()}
		if wanted[ref] || !metav1.IsControlledBy(object, p.owner) {
			return nil
		}
		unwanted++
		if object.GetDeletionTimestamp() != nil || ref.Kind == build.KindJob {
			return nil
		}
		if err := p.remove(ctx, ref, object); err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", ref, err))
		}
		return nil
	})
	return unwanted, errors.Join(append(errs, err)...)
}

func (p *pass) remove(ctx context.Context, ref Ref, object client.Object) error {
	uid := object.GetUID()
	err := p.options.Client.Delete(ctx, object,
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The object was already deleted or replaced. The next pass checks again.
		return nil
	case err != nil:
		return err
	}
	delete(p.state.objects, ref)
	p.result.Pruned = append(p.result.Pruned, ref)
	return nil
}
