package pool

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// Finalizer delays the deletion of a RelayPool with generated keys until events have named
// the keys with funds. Nothing else needs the finalizer: owned objects are
// garbage-collected, and the keys' Secrets stay, because they have no owner.
const Finalizer = v1alpha1.Group + "/keys"

// addFinalizer adds the finalizer to a RelayPool with generated keys, before the first key
// is made.
func (r *Reconciler) addFinalizer(ctx context.Context, pool *v1alpha1.RelayPool) error {
	if pool.Spec.FeePayers.Generate == nil || pool.Spec.Paused || controllerutil.ContainsFinalizer(pool, Finalizer) {
		return nil
	}
	before := pool.DeepCopy()
	controllerutil.AddFinalizer(pool, Finalizer)
	if err := r.Client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	return nil
}

// finalize emits events that name the keys with funds, and removes the finalizer. It needs
// only the API server and the RelayPool itself, so it works even if the chain, Postgres or
// optional CRDs are gone.
func (r *Reconciler) finalize(ctx context.Context, pool *v1alpha1.RelayPool) error {
	if !controllerutil.ContainsFinalizer(pool, Finalizer) {
		r.forget(client.ObjectKeyFromObject(pool))
		return r.reportDeleting(ctx, pool)
	}
	for _, e := range r.fundedKeyEvents(pool) {
		r.emitKeyEvent(pool, e)
	}
	before := pool.DeepCopy()
	controllerutil.RemoveFinalizer(pool, Finalizer)
	if err := r.Client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ignoreNotFound(fmt.Errorf("remove finalizer: %w", err))
	}
	log.FromContext(ctx).Info("Removed finalizer of deleted RelayPool", "keys_left", len(pool.Status.FeePayers))
	r.forget(client.ObjectKeyFromObject(pool))
	return nil
}

// fundedKeyEvents returns the events that name the keys that may have funds. A balance is from
// the last reading of the chain, or from the status if that reading does not have it.
func (r *Reconciler) fundedKeyEvents(pool *v1alpha1.RelayPool) []keys.Event {
	balances := map[string]keys.Balance{}
	if reading, ok := r.Watcher.Reading(client.ObjectKeyFromObject(pool)); ok {
		for address, payer := range reading.Payers {
			balances[address.String()] = keys.Balance{Lamports: payer.Lamports, At: payer.At}
		}
	}
	return keys.FundedKeyEvents(&pool.Status, balances)
}

// reportDeleting writes to the status that the deletion of the RelayPool waits for another
// finalizer.
func (r *Reconciler) reportDeleting(ctx context.Context, pool *v1alpha1.RelayPool) error {
	next := pool.DeepCopy()
	next.Status.ObservedGeneration = pool.Generation
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		meta.RemoveStatusCondition(&next.Status.Conditions, kind)
	}
	meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeleting,
		Message:            "the RelayPool is being deleted, and waits for other finalizers; fee payers' keys stay",
		ObservedGeneration: pool.Generation, LastTransitionTime: metav1.NewTime(r.Now()),
	})
	if equality.Semantic.DeepEqual(pool.Status, next.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, next); err != nil {
		return ignoreNotFound(fmt.Errorf("write status: %w", err))
	}
	return nil
}

// ignoreNotFound returns nil for an error that means that the RelayPool no longer exists.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
