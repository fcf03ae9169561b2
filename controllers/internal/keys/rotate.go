package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// startRotation prepares the incoming keys of a revision for their first use. The keys are
// made, then funded from the old keys, then labelled active.
func (d *decision) startRotation(target int32) {
	d.setStep(target, v1alpha1.RotationGenerate, fmt.Sprintf("making the keys of revision %d", target))
	old := d.pick(func(k Key) bool { return k.State == v1alpha1.PayerActive && k.Revision < target })
	d.clearJobs(target)
	if !d.hasKey(target, v1alpha1.PayerActive) {
		// Once the Job that funds the keys exists, the set of keys is fixed: the Job
		// divides the funds among them.
		if d.job(target, v1alpha1.RotationFund) == nil && (d.planMissingKeys(target, v1alpha1.PayerIncoming) || d.foreignSecretHasName(target)) {
			return
		}
		if len(old) > 0 && !d.fundNewKeys(target, old) {
			return
		}
	}
	d.setStep(target, v1alpha1.RotationCutOver, "")
	d.switchLabels(target)
}

// fundNewKeys plans the step Fund, and reports whether the step is complete.
func (d *decision) fundNewKeys(target int32, old []Key) bool {
	d.setStep(target, v1alpha1.RotationFund, "")
	fresh := d.revision(target)
	if !d.runStep(v1alpha1.RotationFund, target, d.completeRevisions(old), fresh) {
		return false
	}
	// Payers below the minimum cannot pay: switching to them would stop a fleet that works.
	// A balance that was read before the Job ended does not include the moved funds.
	if !d.allUnderfunded(fresh, d.job(target, v1alpha1.RotationFund).Ended) || !d.anyFunded(old) {
		return true
	}
	var addresses []string
	for _, k := range fresh {
		addresses = append(addresses, k.Address)
	}
	d.wait(fmt.Sprintf("the new fee payers hold less than spec.feePayers.minimumBalanceLamports, %s SOL, because the old fee payers had too little to spare: send SOL to %s",
		sol(d.minimum()), someNames(addresses)))
	return false
}

// startUsingNew moves the fleet from the old keys to the keys of the target revision, which
// are all active. Then it drains, sweeps and retires the old keys.
func (d *decision) startUsingNew(target int32) {
	d.setStep(target, v1alpha1.RotationCutOver, "")
	if d.switchLabels(target) {
		return
	}
	old := d.completeRevisions(d.pick(func(k Key) bool { return k.State == v1alpha1.PayerDraining }))
	drain := d.job(target, v1alpha1.RotationDrain)
	if reason := d.stillMounted(old, drain != nil && !drain.Foreign); reason != "" {
		d.wait(reason)
		return
	}
	d.setStep(target, v1alpha1.RotationDrain, "")
	if !d.runStep(v1alpha1.RotationDrain, target, old, nil) {
		return
	}
	d.setStep(target, v1alpha1.RotationSweep, "")
	if !d.runStep(v1alpha1.RotationSweep, target, old, d.revision(target)) {
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

// stillMounted returns why the fleet may still sign with one of the keys; empty if it
// cannot. started means that the next step has started. The rollout was complete then, and
// a later rollout only replaces pods without the keys.
func (d *decision) stillMounted(keys []Key, started bool) string {
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
	case !r.Complete && !started:
		return "the rollout with the new keys is under way"
	}
	return ""
}

// setStep records the step of the rotation, and its message.
func (d *decision) setStep(target int32, step v1alpha1.RotationStep, message string) {
	d.plan.Rotating = true
	d.plan.Rotation = &v1alpha1.RotationStatus{Revision: target, Step: step, Message: message}
}

// wait records what the step waits for.
func (d *decision) wait(message string) {
	if d.plan.Rotation != nil {
		d.plan.Rotation.Message = message
	}
}

// revision returns the keys of one revision that the fleet uses or is about to use.
func (d *decision) revision(revision int32) []Key {
	return d.pick(func(k Key) bool {
		return k.Revision == revision && (k.State == v1alpha1.PayerIncoming || k.State == v1alpha1.PayerActive)
	})
}

// completeRevisions returns all keys, in any state, of the revisions to which the given keys
// belong. This keeps a Job's keys the same while labels change.
func (d *decision) completeRevisions(keys []Key) []Key {
	return d.pick(func(k Key) bool {
		return slices.ContainsFunc(keys, func(other Key) bool { return other.Revision == k.Revision })
	})
}

// jobNamed returns the Job of the name, or nil without one.
func (d *decision) jobNamed(name string) *Job {
	for i := range d.Jobs {
		if d.Jobs[i].Name == name {
			return &d.Jobs[i]
		}
	}
	return nil
}

func (d *decision) job(target int32, step v1alpha1.RotationStep) *Job {
	return d.jobNamed(JobName(d.pool, target, step))
}

// inputs returns the hash of what a Job is for: its step, its revision, and its keys or the
// request. The names of Secrets stand for the keys, because the key in a Secret never
// changes.
func inputs(want JobWanted, request string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %d %q", want.Step, want.Revision, request)
	if request == "" {
		for _, mounts := range [][]Mount{want.From, want.To} {
			fmt.Fprintf(&text, " %q", mounts)
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:8])
}

// useGeneratedKeys determines from the labels how far a rotation has proceeded, and plans
// the next step.
func (d *decision) useGeneratedKeys() {
	d.findLost()
	d.selectMounts()
	incoming, active := d.newest(v1alpha1.PayerIncoming), d.newest(v1alpha1.PayerActive)
	draining := d.newest(v1alpha1.PayerDraining)
	switch {
	case incoming >= 0:
		d.startRotation(incoming)
	case active < 0 && draining < 0:
		d.useFirstRevision()
	case active < 0:
		d.problem(v1alpha1.ReasonNoPayers, "", fmt.Sprintf(
			"no generated fee payer key is active, and some are draining: label a key that the fleet is to use with %s=active", LabelState))
	case draining >= 0 || d.oldest(v1alpha1.PayerActive) < active:
		d.startUsingNew(active)
	default:
		d.keepOrStartRotation(active)
	}
	d.restoreAddressAnnotations()
	if d.plan.Mounted == nil && d.plan.Create == nil && !d.hasProblem(v1alpha1.ReasonNoPayers) {
		d.problem(v1alpha1.ReasonNoPayers, "", "there is no usable fee payer key: the other messages about its Secrets give the reason")
	}
}

// keepOrStartRotation keeps the wanted number of keys, and starts a rotation when the spec asks
// for a higher revision.
func (d *decision) keepOrStartRotation(active int32) {
	wanted := wantedRevision(d.Pool)
	if wanted > active {
		// A rotation raises the revision by one. So every revision has keys, and a search down
		// from the newest finds all keys.
		d.setStep(active+1, v1alpha1.RotationGenerate, fmt.Sprintf("making the keys of revision %d", active+1))
		d.clearJobs(active + 1)
		d.planMissingKeys(active+1, v1alpha1.PayerIncoming)
		d.foreignSecretHasName(active + 1)
		return
	}
	if d.planMissingKeys(active, v1alpha1.PayerActive) {
		return
	}
	if last := d.Pool.Status.Rotation; d.hasOlder(active) || last != nil && last.Revision == active {
		message := ""
		if wanted < active {
			message = fmt.Sprintf("the keys in use have revision %d, which an earlier RelayPool of this name left: "+
				"set spec.feePayers.rotation.revision to %d to start a rotation", active, active+1)
		}
		d.setStep(active, v1alpha1.RotationDone, message)
		d.plan.Rotating = false
	}
}
