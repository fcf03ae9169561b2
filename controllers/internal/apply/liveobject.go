package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
