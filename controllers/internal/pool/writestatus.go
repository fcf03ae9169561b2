package pool

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// write writes the status if it changed, and then emits events of the changes.
func (r *Reconciler) write(ctx context.Context, f *Facts, p *Plan, status *v1alpha1.RelayPoolStatus) error {
	if equality.Semantic.DeepEqual(&f.Pool.Status, status) {
		return nil
	}
	pool := f.Pool.DeepCopy()
	pool.Status = *status
	err := r.Client.Status().Update(ctx, pool)
	if err == nil || outcomeUnknown(err) {
		// If the update was executed, the next pass sees no change and emits no event. A
		// repeated event is better than a missing one.
		r.emitStatusChanges(f, p, status)
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	// The version stays the same if only fractions of a second differed, which are not stored.
	if pool.ResourceVersion != f.Pool.ResourceVersion {
		r.replacedVersions.set(client.ObjectKeyFromObject(pool), f.Pool.ResourceVersion, r.Now())
	}
	log.FromContext(ctx).V(1).Info("Wrote status")
	return nil
}

// outcomeUnknown reports whether the API server may have executed a request that returned
// an error.
func outcomeUnknown(err error) bool {
	return !errors.As(err, new(apierrors.APIStatus)) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
