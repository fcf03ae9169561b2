package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CacheTransform prepares an object for the operator's cache: it keeps the managed
// fields of the specification, with which an Applier compares, and drops those of the
// status. Use it for OwnedTypes; other kinds need no managed fields.
func CacheTransform(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("transform %T for the cache: %w", object, err)
	}
	entries := slices.DeleteFunc(accessor.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource == "status"
	})
	accessor.SetManagedFields(entries)
	return object, nil
}
