package pool

import (
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
)

// stalled is the zero verdict unless a person has to act.
func stalled(p *Plan, o *Outcome) verdict {
	if len(p.Faults) > 0 {
		v := notAccepted(p)
		return conditionTrue(v.reason, v.message)
	}
	if p.Paused {
		return verdict{}
	}
	if refs := o.Result.Foreign; len(refs) > 0 {
		message := "in this namespace " + names(refs) +
			" belongs to somebody else and was not changed: delete or rename it, or give the RelayPool another name"
		if withheld := o.Result.Withheld; len(withheld) > 0 {
			message += "; until then " + names(withheld) + " is not made or changed, because its pods would use the foreign object"
		}
		return conditionTrue(v1alpha1.ReasonForeignObject, message)
	}
	if refused := o.Result.Refused; len(refused) > 0 {
		parts := make([]string, 0, len(refused))
		for _, r := range refused {
			parts = append(parts, refusalMessage(r))
		}
		slices.Sort(parts)
		return conditionTrue(v1alpha1.ReasonRefused, joinFirst(parts, 3))
	}
	for _, problem := range p.Keys.Problems {
		if problem.Reason == v1alpha1.ReasonRotationFailed {
			return conditionTrue(problem.Reason, problem.Message)
		}
	}
	return verdict{}
}

func refusalMessage(r apply.Refusal) string {
	return "the API server refused " + r.String() + " (" + r.Reason + "): " + r.Message
}
