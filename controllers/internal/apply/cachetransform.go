package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CacheTransform prepares an object for the operator's cache. It keeps the managed fields of
// the spec, because an Applier needs them to find differences, and drops the managed fields
// of the status. Use it for OwnedTypes; other kinds need no managed fields.
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
