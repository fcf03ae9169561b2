package pool

import (
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/refusal"
)

// limitedByHeld returns the verdict on the autoscaling of a fleet whose backlog is 0 only because
// every waiting submission is held.
func limitedByHeld(a *v1alpha1.Autoscaling, b Backlog) (limited verdict, ok bool) {
	reasons := b.stoppedReasons()
	if b.Due != 0 || len(reasons) == 0 || b.Old {
		return verdict{}, false
	}
	return conditionTrue(v1alpha1.ReasonLimited, scalerName(a)+" sizes the fleet, and more pods would not help: every waiting submission is held ("+
		strings.Join(reasons, ", ")+"), and held submissions do not count as backlog; "+heldRemedy(reasons)), true
}

// stoppedReasons returns the sorted reasons for which submissions are held until a person
// acts. It omits the reasons of swaps and of the router: a swap often waits for a price or for
// its second leg, and then needs no person.
func (b Backlog) stoppedReasons() (reasons []string) {
	for reason, count := range b.Held {
		if count > 0 && !strings.HasPrefix(reason, "swap_") && !strings.HasPrefix(reason, "router_") && reason != "no_route" {
			reasons = append(reasons, reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// heldRemedy returns what to do about each reason.
func heldRemedy(reasons []string) string {
	var remedies []string
	for _, reason := range reasons {
		switch reason {
		case string(refusal.FeePayerEmpty):
			remedies = append(remedies, "fund the fee payers (condition FeePayersFunded)")
		case string(refusal.SpendCapReached):
			remedies = append(remedies, "raise spec.feePayers.spendCaps, or wait for their window")
		case string(refusal.ChainUnavailable):
			remedies = append(remedies, "repair or add RPC endpoints, or raise their budget (spec.solana.endpoints)")
		default:
			remedies = append(remedies, "docs/reference/alerts/RelaypoolSubmissionsHeld.md says what to do about "+reason)
		}
	}
	return strings.Join(remedies, "; ")
}
