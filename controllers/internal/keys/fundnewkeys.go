package keys

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/onchain"
)

// fundNewKeys plans the step Fund, and reports whether the step is complete.
func (d *decision) fundNewKeys(target int32, old []Key) bool {
	d.setStep(target, v1alpha1.RotationFund, "")
	newKeys := d.usableKeys(target)
	if !d.runStep(v1alpha1.RotationFund, target, d.completeRevisions(old), newKeys) {
		return false
	}
	// If all new payers are below the minimum, they cannot pay. A switch to them would stop the
	// fleet although its old payers can still pay. A balance that was read before the Job ended
	// does not count, because it lacks the moved funds.
	if !d.allUnderfunded(newKeys, d.job(target, v1alpha1.RotationFund).Ended) || !d.anyFunded(old) {
		return true
	}
	var addresses []string
	for _, k := range newKeys {
		addresses = append(addresses, k.Address)
	}
	d.wait(fmt.Sprintf("the new fee payers hold less than spec.feePayers.minimumBalanceLamports, %s SOL, because the old fee payers had too little to spare: send SOL to %s",
		onchain.SOL(d.minimum()), someNames(addresses)))
	return false
}
