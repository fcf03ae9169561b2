package keys

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// prepareNewKeys prepares the incoming keys of a revision for their first use. The keys are
// made, then funded from the old keys, then labelled active.
func (d *decision) prepareNewKeys(target int32) {
	d.setStep(target, v1alpha1.RotationGenerate, fmt.Sprintf("making the keys of revision %d", target))
	old := d.pick(func(k Key) bool { return k.State == v1alpha1.PayerActive && k.Revision < target })
	d.clearJobs(target)
	if !d.hasKey(target, v1alpha1.PayerActive) {
		// Once the Job that funds the keys exists, the set of keys is fixed: the Job
		// divides the funds among them.
		if d.job(target, v1alpha1.RotationFund) == nil && (d.planMissingKeys(target, v1alpha1.PayerIncoming) || d.waitForForeignSecret(target)) {
			return
		}
		if len(old) > 0 && (d.waitForBackup(target) || !d.fundNewKeys(target, old)) {
			return
		}
	}
	d.setStep(target, v1alpha1.RotationCutOver, "")
	d.switchLabels(target)
}

// keepOrStartRotation keeps the wanted number of keys, and starts a rotation when the spec asks
// for a higher revision.
func (d *decision) keepOrStartRotation(active int32) {
	wanted := wantedRevision(d.Pool)
	if wanted > active {
		// A rotation raises the revision by one, even if the spec asks for more. So no revision
		// is without keys, and a search down from the newest revision finds all keys.
		d.setStep(active+1, v1alpha1.RotationGenerate, fmt.Sprintf("making the keys of revision %d", active+1))
		d.clearJobs(active + 1)
		d.planMissingKeys(active+1, v1alpha1.PayerIncoming)
		d.waitForForeignSecret(active + 1)
		return
	}
	if d.planMissingKeys(active, v1alpha1.PayerActive) {
		return
	}
	if last := d.Pool.Status.Rotation; d.hasOlderKey(active) || last != nil && last.Revision == active {
		message := ""
		if wanted < active {
			message = fmt.Sprintf("the keys in use have revision %d, which an earlier RelayPool of this name left: "+
				"set spec.feePayers.rotation.revision to %d to start a rotation", active, active+1)
		}
		d.setStep(active, v1alpha1.RotationDone, message)
		d.plan.Rotating = false
	}
}
