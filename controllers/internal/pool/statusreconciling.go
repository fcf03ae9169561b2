package pool

import (
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// reconciling is the zero verdict if the fleet runs as declared. It is also zero while the
// RelayPool is paused or stalled, or while nothing can be deployed.
func reconciling(f *Facts, p *Plan, o *Outcome, stall verdict) verdict {
	switch {
	case p.Paused || stall.status != "":
		return verdict{}
	case p.Keys.Rotating:
		return conditionTrue(v1alpha1.ReasonRotating, "the fee payers' keys are being rotated: status.rotation has the step and what it waits for")
	case o.Failed:
		return conditionTrue(v1alpha1.ReasonProgressing, "not everything could be written; the operator's log says why, and the writes are repeated")
	case len(o.Result.Waiting) > 0:
		return conditionTrue(v1alpha1.ReasonProgressing, names(o.Result.Waiting)+" is being deleted, and is made again afterwards")
	case len(o.Result.Contested) > 0:
		return conditionTrue(v1alpha1.ReasonProgressing, names(o.Result.Contested)+
			" is changed by somebody else repeatedly, and is repaired less often: find out who writes it (kubectl get --show-managed-fields -o yaml)")
	case !p.Deploy || f.isUnread(PartFleet):
		return verdict{}
	case p.RecordInitialised:
		return conditionTrue(v1alpha1.ReasonProgressing, "the gate has opened, and the fleet starts")
	case rollingOut(f) || wroteDeployment(&o.Result):
		return conditionTrue(v1alpha1.ReasonProgressing, "pods are being created or replaced: the condition Available shows the progress")
	default:
		return verdict{}
	}
}

// wroteDeployment reports whether this pass has written the Deployment. The Deployment's status
// was read before that write, and could make the rollout look complete.
func wroteDeployment(r *apply.Result) bool {
	isDeployment := func(ref apply.Ref) bool { return ref.Kind == build.KindDeployment }
	return slices.ContainsFunc(r.Applied, isDeployment) || slices.ContainsFunc(r.Repaired, isDeployment)
}
