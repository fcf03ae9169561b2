package pool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// SetupWithManager registers the Reconciler with the manager. A pass starts when a
// RelayPool, an object that it owns or a pod of its fleet changes, and when the chain
// watcher or the poller of backlogs sends an event.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(m).
		Named("relaypool").
		// Tests run several operators in one process, so the name is not unique there.
		WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).
		For(&v1alpha1.RelayPool{}, builder.WithPredicates(declarationChanged())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(poolOf), builder.WithPredicates(podChanged())).
		WatchesRawSource(source.Channel(r.Watcher.Events(), &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.Backlogs.Events(), &handler.EnqueueRequestForObject{}))
	for _, owned := range apply.OwnedTypes() {
		b = b.Owns(owned)
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the reconciler of RelayPools: %w", err)
	}
	return nil
}

// declarationChanged lets an update of a RelayPool start a pass if it changes what users
// declare, or opens the gate. The operator's other writes of the status start no pass.
func declarationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, beforeOK := e.ObjectOld.(*v1alpha1.RelayPool)
		after, afterOK := e.ObjectNew.(*v1alpha1.RelayPool)
		if !beforeOK || !afterOK {
			return true
		}
		return before.ResourceVersion == after.ResourceVersion || // a resync
			before.Generation != after.Generation ||
			!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
			!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			(before.Status.InitialisedAt == nil) != (after.Status.InitialisedAt == nil)
	}}
}

// poolOf returns a request for the RelayPool that a pod belongs to.
func poolOf(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[build.LabelPool]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// podChanged lets an update of a pod start a pass if it changes what a status shows: the
// pod's phase, address, deletion, readiness, scheduling or containers.
func podChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, beforeOK := e.ObjectOld.(*corev1.Pod)
		after, afterOK := e.ObjectNew.(*corev1.Pod)
		if !beforeOK || !afterOK {
			return true
		}
		return before.Status.Phase != after.Status.Phase || before.Status.PodIP != after.Status.PodIP ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			podReady(before) != podReady(after) ||
			!equality.Semantic.DeepEqual(before.Status.ContainerStatuses, after.Status.ContainerStatuses) ||
			schedulingState(before) != schedulingState(after)
	}}
}

func schedulingState(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return string(c.Status) + c.Reason
		}
	}
	return ""
}
