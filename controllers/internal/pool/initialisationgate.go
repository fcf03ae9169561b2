package pool

import (
	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// gateHoldsFleet reports whether the gate keeps the fleet at 0 pods. The gate stays open
// once a pass has found the pool initialised. Unknown facts never stop a running fleet.
func gateHoldsFleet(f *Facts, poolState poolcheck.State) bool {
	if f.Pool.Spec.Pool.Gate == v1alpha1.GateWarn || f.Pool.Status.InitialisedAt != nil {
		return false
	}
	return f.Fleet.deploymentReplicas() == 0 || poolState == poolcheck.Failed
}

// gateOpens reports whether this pass is the first to find the pool initialised. The pass
// then records the time in the status, which keeps the gate open in all later passes.
func gateOpens(f *Facts, poolState poolcheck.State) bool {
	return f.Pool.Status.InitialisedAt == nil && poolState == poolcheck.OK
}
