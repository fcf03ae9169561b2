package pool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// mostSevere returns the more severe of two verdicts. False is the most severe status, then
// Unknown, then True or no status. If both verdicts are equally severe, mostSevere returns the
// first. worst is the zero verdict or an earlier result, so its status is never True.
func mostSevere(worst, v verdict) verdict {
	switch {
	case v.status == "", v.status == metav1.ConditionTrue, worst.status == metav1.ConditionFalse:
		return worst
	case v.status == metav1.ConditionFalse, worst.status == "":
		return v
	default:
		return worst
	}
}

// readiness derives Ready from the most severe verdict and the stall. False takes
// precedence, because it matters most to clients. A stall takes precedence over
// NotDeployed, which it causes, and over Unknown.
func readiness(worst, stall verdict, p *Plan) verdict {
	switch {
	case worst.status == metav1.ConditionFalse && (stall.status == "" || worst.reason != v1alpha1.ReasonNotDeployed):
		return worst
	case stall.status != "":
		return conditionFalse(stall.reason, stall.message)
	case worst.status != "":
		return worst
	case p.Paused:
		return conditionTrue(v1alpha1.ReasonPaused, "the fleet is ready; spec.paused is true, so the operator changes nothing")
	default:
		return conditionTrue(v1alpha1.ReasonReady, "the fleet serves the pool")
	}
}
