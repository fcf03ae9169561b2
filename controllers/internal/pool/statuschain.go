package pool

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

func poolInitialised(f *Facts, p *Plan) verdict {
	if len(p.Faults) > 0 || len(f.Target.Problems) > 0 || f.Target.Query.Target.Profile == nil && f.References.Known() {
		return conditionUnknown(v1alpha1.ReasonConfigurationIncomplete, "the pool is not checked before the spec is accepted and its Secrets and ConfigMaps are resolved: see the conditions Accepted and SecretsResolved")
	}
	if !f.ChainRead {
		return orLastStatus(f, v1alpha1.ConditionPoolInitialised, conditionUnknown(v1alpha1.ReasonNotChecked, "the first check of the pool is under way"))
	}
	state, reason, message := f.Chain.Pool()
	switch state {
	case poolcheck.OK:
		return conditionTrue(string(reason), message)
	case poolcheck.Failed:
		return conditionFalse(string(reason), message)
	default:
		if reason == poolcheck.ReasonConfigurationIncomplete {
			message += ": see the condition SecretsResolved"
		}
		return conditionUnknown(string(reason), message)
	}
}

// orLastStatus returns the condition that the status has for this generation of the spec,
// or fallback if there is none. A new leader uses it until its own first check, seconds
// later, so that the RelayPool does not become unready meanwhile.
func orLastStatus(f *Facts, kind string, fallback verdict) verdict {
	last := meta.FindStatusCondition(f.Pool.Status.Conditions, kind)
	if last == nil || last.ObservedGeneration != f.Pool.Generation {
		return fallback
	}
	return verdict{last.Status, last.Reason, last.Message}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
