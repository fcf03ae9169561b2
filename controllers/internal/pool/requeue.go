package pool

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

const (
	// idleInterval is the time between passes when no event starts one.
	idleInterval = 10 * time.Minute
	// minRequeue is the shortest wait before another pass. It prevents a busy loop.
	minRequeue = time.Second
	// exposureInterval is the time between passes while a Gateway does not serve the HTTPRoute,
	// because no watch reports changes of its status.
	exposureInterval = 10 * time.Second
	// jitter is the fraction by which a wait varies. It spreads the passes of RelayPools that
	// were made at the same time.
	jitter = 0.1
)

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
	if v := routeVerdict(f); v.status == metav1.ConditionUnknown || v.reason == v1alpha1.ReasonNotAccepted {
		wait = min(wait, exposureInterval)
	}
	if o.Result.RetryAfter > 0 {
		wait = min(wait, o.Result.RetryAfter)
	}
	return max(wait, minRequeue)
}
