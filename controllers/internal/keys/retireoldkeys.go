package keys

import "github.com/relaypool/relaypool/api/v1alpha1"

// retireOldKeys drains, sweeps and retires the old keys, with which no pod signs any more.
func (d *decision) retireOldKeys(target int32, old []Key) {
	d.setStep(target, v1alpha1.RotationDrain, "")
	if !d.runStep(v1alpha1.RotationDrain, target, old, nil) {
		return
	}
	d.setStep(target, v1alpha1.RotationSweep, "")
	// The Job moves all lamports to the first of the new keys: see build.RotationJob.
	if !d.runStep(v1alpha1.RotationSweep, target, old, d.usableKeys(target)) {
		return
	}
	d.setStep(target, v1alpha1.RotationRetire, "labelling the old keys retired")
	for _, k := range old {
		if k.State == v1alpha1.PayerDraining {
			d.plan.Label = append(d.plan.Label, LabelChange{Key: k, State: v1alpha1.PayerRetired})
		}
	}
}
