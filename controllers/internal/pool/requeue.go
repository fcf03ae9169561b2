package pool

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
)

const (
	// idleInterval is the time between passes when no event starts one.
	idleInterval = 10 * time.Minute
	// minRequeue is the shortest wait before another pass. It prevents a busy loop.
	minRequeue = time.Second
	// jitter is the fraction by which a wait varies. It spreads the passes of RelayPools that
	// were made at the same time.
	jitter = 0.1
)

// Reconcile does one pass of one RelayPool. After an error, controller-runtime counts the failure and
// comes again, ever more slowly.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcileOne(ctx, req)
	switch {
	case err == nil:
		return result, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctrl.Result{}, nil // the process ends: the next leader reconciles everything
	case apply.OnlyConflicts(err): // another client wrote meanwhile
		return ctrl.Result{RequeueAfter: time.Duration(float64(minRequeue) * (0.5 + r.Random()))}, nil
	default:
		return ctrl.Result{}, err
	}
}

// requeueAfter returns the wait until the next pass. An event can start a pass earlier.
func (r *Reconciler) requeueAfter(f *Facts, p *Plan, o *Outcome, status *v1alpha1.RelayPoolStatus) time.Duration {
	if p.RecordInitialised || p.Keys.Writes() && !p.StatusOnly {
		return minRequeue
	}
	wait := time.Duration(float64(idleInterval) * (1 - jitter + 2*jitter*r.Random()))
	limitTo := func(at time.Time) {
		if !at.IsZero() {
			wait = min(wait, at.Sub(f.Now))
		}
	}
	limitTo(f.References.Next)
	limitTo(f.Keys.Next)
	limitTo(figuresDue(f, p, status))
	if o.Result.RetryAfter > 0 {
		wait = min(wait, o.Result.RetryAfter)
	}
	return max(wait, minRequeue)
}
