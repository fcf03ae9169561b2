package keys

import "github.com/relaypool/relaypool/api/v1alpha1"

// startUsingNewKeys moves the fleet from the old keys to the keys of the target revision, which
// are all active. Then it retires the old keys.
func (d *decision) startUsingNewKeys(target int32) {
	d.setStep(target, v1alpha1.RotationCutOver, "")
	if d.switchLabels(target) {
		return
	}
	old := d.completeRevisions(d.pick(func(k Key) bool { return k.State == v1alpha1.PayerDraining }))
	drain := d.job(target, v1alpha1.RotationDrain)
	if reason := d.whyStillMounted(old, drain != nil && !drain.Foreign); reason != "" {
		d.wait(reason)
		return
	}
	d.retireOldKeys(target, old)
}

// switchLabels labels the new keys active, and only then the old keys draining.
// It reports whether there is anything to label.
func (d *decision) switchLabels(target int32) bool {
	var old []LabelChange
	for _, k := range d.Keys.Keys {
		switch {
		case k.Revision == target && k.State == v1alpha1.PayerIncoming:
			d.plan.Label = append(d.plan.Label, LabelChange{Key: k, State: v1alpha1.PayerActive})
		case k.Revision < target && (k.State == v1alpha1.PayerActive || k.State == v1alpha1.PayerIncoming):
			old = append(old, LabelChange{Key: k, State: v1alpha1.PayerDraining})
		}
	}
	d.plan.Label = append(d.plan.Label, old...)
	d.wait("labelling the new keys active, then the old keys draining")
	return len(d.plan.Label) > 0
}
