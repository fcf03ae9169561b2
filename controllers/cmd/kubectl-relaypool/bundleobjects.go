package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

var getOptions = metav1.GetOptions{}

// addOwned adds the objects that the operator made for the RelayPool, and the Deployment's
// ReplicaSets.
func (b *bundle) addOwned(ctx context.Context) {
	for _, kind := range append(build.Kinds(), appsv1.SchemeGroupVersion.WithKind("ReplicaSet")) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := b.List(ctx, &list, client.InNamespace(b.namespace), client.MatchingLabels{build.LabelPool: b.pool.Name})
		if meta.IsNoMatchError(err) && slices.Contains(build.OptionalKinds(), kind) {
			continue // the cluster does not have the kind
		}
		if err != nil {
			b.failed(kind.Kind+" objects", err)
			continue
		}
		for i := range list.Items {
			object := &list.Items[i]
			owner := metav1.GetControllerOfNoCopy(object)
			if owner == nil || !b.involved[owner.UID] {
				continue
			}
			b.involved[object.GetUID()] = true
			b.addObject(fmt.Sprintf("objects/%s-%s.yaml", strings.ToLower(kind.Kind), object.GetName()), object.Object)
		}
	}
}

// addEvents adds the events of everything that was collected before.
func (b *bundle) addEvents(ctx context.Context) {
	var events corev1.EventList
	if err := b.List(ctx, &events, client.InNamespace(b.namespace)); err != nil {
		b.failed("events", err)
		return
	}
	kept := slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return !b.involved[e.InvolvedObject.UID] })
	slices.SortFunc(kept, func(x, y corev1.Event) int {
		return x.LastTimestamp.Compare(y.LastTimestamp.Time)
	})
	for i := range kept {
		kept[i].ManagedFields = nil
	}
	b.addObject("events.yaml", map[string]any{"events": kept})
}

// withoutBookkeeping converts an object's JSON to YAML, without managed fields and the copy that
// kubectl apply left.
func withoutBookkeeping(content []byte) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(content, &object); err != nil {
		return nil, errors.New("the object could not be read back")
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
		}
	}
	return yaml.Marshal(object)
}
