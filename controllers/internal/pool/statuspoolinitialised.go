package pool

import (
	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

func poolInitialised(f *Facts, p *Plan) verdict {
	if len(p.Faults) > 0 || len(f.Target.Problems) > 0 || f.Target.Query.Target.Profile == nil && f.References.Known() {
		return conditionUnknown(v1alpha1.ReasonConfigurationIncomplete, "the pool is not checked before the spec is accepted and its Secrets and ConfigMaps are resolved: see the conditions Accepted and SecretsResolved")
	}
	if !f.ChainRead {
		return lastVerdictOr(f, v1alpha1.ConditionPoolInitialised, conditionUnknown(v1alpha1.ReasonNotChecked, "the first check of the pool is under way"))
	}
	state, reason, message := f.Chain.PoolState()
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
