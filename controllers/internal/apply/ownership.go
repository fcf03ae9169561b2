package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// liveObject is an existing object.
type liveObject struct {
	object  metav1.Object
	content map[string]any
}

func (f *liveObject) uid() types.UID                             { return f.object.GetUID() }
func (f *liveObject) version() string                            { return f.object.GetResourceVersion() }
func (f *liveObject) managedFields() []metav1.ManagedFieldsEntry { return f.object.GetManagedFields() }

// find reads an object, and returns nil if the object does not exist. The cache may be limited to
// objects that have the label build.LabelPool, and an object of another owner may lack the label.
// So find reads an object that is not in the cache from the API server.
func (p *pass) find(ctx context.Context, ref Ref) (*liveObject, error) {
	object := typedObject(ref.Kind)
	if object == nil {
		return p.read(ctx, ref)
	}
	err := p.options.Client.Get(ctx, p.key(ref), object)
	if apierrors.IsNotFound(err) {
		return p.read(ctx, ref)
	}
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return toLiveObject(ref, object)
}

// read reads an object from the API server, and returns nil if the object does not exist.
func (p *pass) read(ctx context.Context, ref Ref) (*liveObject, error) {
	if object := typedObject(ref.Kind); object != nil {
		if err := p.options.Live.Get(ctx, p.key(ref), object); err != nil {
			return nil, ignoreNotFound(err)
		}
		return toLiveObject(ref, object)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.Kind)
	if err := p.options.Live.Get(ctx, p.key(ref), u); err != nil {
		return nil, ignoreNotFound(err)
	}
	return &liveObject{object: u, content: u.Object}, nil
}

func (p *pass) key(ref Ref) client.ObjectKey {
	return client.ObjectKey{Namespace: p.owner.Namespace, Name: ref.Name}
}

func toLiveObject(ref Ref, object client.Object) (*liveObject, error) {
	// ToUnstructured makes a copy, so a change of content does not change object.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("read as fields: %w", err)
	}
	// The typed client leaves these fields empty.
	content["apiVersion"], content["kind"] = ref.Kind.GroupVersion().String(), ref.Kind.Kind
	return &liveObject{object: object, content: content}, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("read: %w", err)
}

type ownership int

const (
	ownedByOther ownership = iota // foreign
	beingDeleted                  // being deleted, or about to be
	ownedByPool
)

// Owns reports whether Apply treats an existing object as the RelayPool's. An object without a
// controller counts if the operator applied it.
func Owns(owner *v1alpha1.RelayPool, object metav1.Object) bool {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return controller.UID == owner.UID
	}
	return appliedByOperator(object.GetManagedFields())
}

// ownership returns the ownership of the object. An object without a controller belongs to the
// RelayPool only if the operator applied it. Such an object has lost its owner reference, or an
// earlier RelayPool was deleted without its objects.
func (f *liveObject) ownership(owner *v1alpha1.RelayPool) ownership {
	deleting := f.object.GetDeletionTimestamp() != nil
	controller := metav1.GetControllerOf(f.object)
	switch {
	case controller == nil:
		if !appliedByOperator(f.managedFields()) {
			return ownedByOther
		}
	case controller.UID == owner.UID:
	case controller.Kind == v1alpha1.Kind && controller.Name == owner.Name && isRelaypoolGroup(controller.APIVersion):
		// An earlier RelayPool of this name owns the object. The garbage collector is about to
		// delete it.
		return beingDeleted
	default:
		return ownedByOther
	}
	if deleting {
		return beingDeleted
	}
	return ownedByPool
}

func isRelaypoolGroup(apiVersion string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && gv.Group == v1alpha1.Group
}

func appliedByOperator(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldOwner && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
}

// mayWrite reports whether the object may be written, and lists an object that may not be written
// as Foreign or Waiting. An existing object may be changed if the RelayPool owns the object and
// the object is not being deleted. A missing object may be created, except an autoscaler while the
// RelayPool's autoscaler of the other kind still exists.
func (p *pass) mayWrite(ctx context.Context, ref Ref, live *liveObject) (bool, error) {
	if live == nil {
		return p.mayCreate(ctx, ref)
	}
	switch live.ownership(p.owner) {
	case ownedByOther:
		p.result.Foreign = append(p.result.Foreign, ref)
		return false, nil
	case beingDeleted:
		p.requeue(ref)
		return false, nil
	case ownedByPool:
	}
	return true, nil
}
