package keys

import (
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// startUsingNewKeys moves the fleet from the old keys to the keys of the target revision, which
// are all active. Then it drains, sweeps and retires the old keys.
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
	d.setStep(target, v1alpha1.RotationDrain, "")
	if !d.runStep(v1alpha1.RotationDrain, target, old, nil) {
		return
	}
	d.setStep(target, v1alpha1.RotationSweep, "")
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

// whyStillMounted returns why the fleet may still sign with one of the keys; empty if the fleet
// cannot. rolledOut means that the rollout that removed the keys was complete in an earlier
// pass. In that case a rollout that is under way now replaces only pods without the keys, so
// it does not count.
func (d *decision) whyStillMounted(keys []Key, rolledOut bool) string {
	mounted := func(secrets []string) bool {
		return slices.ContainsFunc(keys, func(k Key) bool { return slices.Contains(secrets, k.Secret) })
	}
	switch r := d.Rollout; {
	case !r.Known:
		return "the fleet's Deployment and pods could not be read"
	case mounted(r.Template):
		return "the fleet's Deployment is about to get the new keys"
	case mounted(r.Pods):
		return "pods with the old keys are being replaced"
	case !r.Complete && !rolledOut:
		return "the rollout with the new keys is under way"
	}
	return ""
}
