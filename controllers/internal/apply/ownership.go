package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

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
