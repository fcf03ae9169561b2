package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// bringIn takes the incoming keys of a revision up to their first use: all are
// made, then funded from the old ones, then labelled active.
func (d *decision) bringIn(target int32) {
	d.rotate(target, v1alpha1.RotationGenerate, fmt.Sprintf("makes the keys of revision %d", target))
	old := d.pick(func(k Key) bool { return k.State == v1alpha1.PayerActive && k.Revision < target })
	d.clearJobs(target)
	if !d.any(target, v1alpha1.PayerActive) {
		// Once the Job that funds them is made, the set of keys stands: what it moved
		// was shared out among these.
		if d.job(target, v1alpha1.RotationFund) == nil && (d.create(target, v1alpha1.PayerIncoming) || d.inTheWay(target)) {
			return
		}
		if len(old) > 0 && !d.funded(target, old) {
			return
		}
	}
	d.rotate(target, v1alpha1.RotationCutOver, "")
	d.switchLabels(target)
}

// funded takes the step Fund, and tells whether it is over.
func (d *decision) funded(target int32, old []Key) bool {
	d.rotate(target, v1alpha1.RotationFund, "")
	fresh := d.revision(target)
	if !d.step(v1alpha1.RotationFund, target, d.wholeRevisions(old), fresh) {
		return false
	}
	// Payers without the minimum pay nothing: switching to them would stop a fleet
	// that works. What was read before the Job ended says nothing of what it moved.
	if !d.allShort(fresh, d.job(target, v1alpha1.RotationFund).Ended) || !d.oneHolds(old) {
		return true
	}
	var addresses []string
	for _, k := range fresh {
		addresses = append(addresses, k.Address)
	}
	d.wait(fmt.Sprintf("the new fee payers hold less than spec.feePayers.minimumBalanceLamports, %s SOL, and what the old ones could spare was not enough: send SOL to %s",
		sol(d.minimum()), someNames(addresses)))
	return false
}

// cutOver brings the fleet from the old keys to those of the target revision,
// which are all active, and the old ones to their end.
func (d *decision) cutOver(target int32) {
	d.rotate(target, v1alpha1.RotationCutOver, "")
	if d.switchLabels(target) {
		return
	}
	old := d.wholeRevisions(d.pick(func(k Key) bool { return k.State == v1alpha1.PayerDraining }))
	drain := d.job(target, v1alpha1.RotationDrain)
	if reason := d.stillMounted(old, drain != nil && !drain.Foreign); reason != "" {
		d.wait(reason)
		return
	}
	d.rotate(target, v1alpha1.RotationDrain, "")
	if !d.step(v1alpha1.RotationDrain, target, old, nil) {
		return
	}
	d.rotate(target, v1alpha1.RotationSweep, "")
	if !d.step(v1alpha1.RotationSweep, target, old, d.revision(target)) {
		return
	}
	d.rotate(target, v1alpha1.RotationRetire, "labels the old keys retired")
	for _, k := range old {
		if k.State == v1alpha1.PayerDraining {
			d.plan.Label = append(d.plan.Label, LabelChange{Key: k, State: v1alpha1.PayerRetired})
		}
	}
}

// switchLabels has the new keys labelled active, and only then the old ones
// draining. It tells whether there is anything to label.
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
	d.wait("labels the new keys active and the old ones draining")
	return len(d.plan.Label) > 0
}

// stillMounted says why the fleet may still sign with one of the keys; empty
// when it cannot. begun: the next step was begun, so the rollout was complete,
// and a later one only replaces pods that do not mount them.
func (d *decision) stillMounted(keys []Key, begun bool) string {
	mounted := func(secrets []string) bool {
		return slices.ContainsFunc(keys, func(k Key) bool { return slices.Contains(secrets, k.Secret) })
	}
	switch r := d.Rollout; {
	case !r.Known:
		return "the fleet's Deployment and pods could not be read"
	case mounted(r.Template):
		return "the fleet's Deployment is about to be given the new keys"
	case mounted(r.Pods):
		return "pods with the old keys are being replaced"
	case !r.Complete && !begun:
		return "the rollout with the new keys is under way"
	}
	return ""
}

// step has a Job take a step, and tells whether it has.
func (d *decision) step(step v1alpha1.RotationStep, target int32, from, to []Key) bool {
	want := JobWanted{
		Name: JobName(d.pool, target, step), Step: step, Revision: target, From: mounts(from), To: mounts(to),
		Token: d.Pool.Annotations[AnnotationRetry],
	}
	want.Inputs = inputs(want, "")
	return d.carryOut(want, AnnotationRetry)
}

// carryOut compares the Job that is wanted with the one that is there.
func (d *decision) carryOut(want JobWanted, annotation string) bool {
	have := d.named(want.Name)
	switch {
	case have == nil && d.Blocked != "":
		d.wait("Job " + want.Name + " is not made yet: " + d.Blocked)
	case have == nil:
		d.plan.Job = &want
		d.wait("Job " + want.Name + " is made")
	case have.Foreign:
		d.wait("Job " + want.Name + " belongs to somebody else: delete it, or wait until it is gone")
	case have.Deleting:
		d.wait("the former Job " + want.Name + " is being deleted")
	case have.Inputs != want.Inputs, have.State == JobFailed && have.Token != want.Token:
		d.plan.DeleteJobs = append(d.plan.DeleteJobs, *have)
		d.wait("the former Job " + want.Name + " is being deleted")
	case have.State == JobComplete:
		return true
	case have.State == JobFailed:
		d.fail(want, have.Message, annotation)
	default:
		want.Existing = have
		d.plan.Job = &want
		d.wait(reportRunning(have))
	}
	return false
}

// reportRunning says what a pod of the Job said that ended before its time: the
// Job tries again, and a person may know better.
func reportRunning(j *Job) string {
	text := "Job " + j.Name + " is running"
	if j.Message != "" {
		text += "; its last try ended with: " + shorten(j.Message, maxCause)
	}
	return text
}

// fail leaves a step to a person: its Job has tried several times by itself.
func (d *decision) fail(want JobWanted, said, annotation string) {
	if said == "" {
		said = "it left no message"
	}
	said = shorten(said, maxCause)
	message := fmt.Sprintf("Job %s failed: %s. Nothing is lost. See kubectl -n %s logs job/%s, mend the cause, then have it tried again: "+
		"kubectl -n %s annotate relaypool %s --overwrite %s=\"$(date +%%s)\"",
		want.Name, said, d.Pool.Namespace, want.Name, d.Pool.Namespace, d.pool, annotation)
	d.plan.Failed = true
	d.problem(v1alpha1.ReasonRotationFailed, "", message)
	d.wait(message)
}

// clearJobs has the Jobs of earlier rotations deleted, which were kept so that
// people could see what they said.
func (d *decision) clearJobs(target int32) {
	for _, j := range d.Jobs {
		current := slices.ContainsFunc([]v1alpha1.RotationStep{v1alpha1.RotationFund, v1alpha1.RotationDrain, v1alpha1.RotationSweep},
			func(s v1alpha1.RotationStep) bool { return j.Name == JobName(d.pool, target, s) })
		if !current && !j.Foreign && !j.Deleting {
			d.plan.DeleteJobs = append(d.plan.DeleteJobs, j)
		}
	}
}

// rotate says how far the rotation has come.
func (d *decision) rotate(target int32, step v1alpha1.RotationStep, message string) {
	d.plan.Rotating = true
	d.plan.Rotation = &v1alpha1.RotationStatus{Revision: target, Step: step, Message: message}
}

// wait says what the step waits for.
func (d *decision) wait(message string) {
	if d.plan.Rotation != nil {
		d.plan.Rotation.Message = message
	}
}

// revision gives the keys of one revision that the fleet uses or is about to use.
func (d *decision) revision(revision int32) []Key {
	return d.pick(func(k Key) bool {
		return k.Revision == revision && (k.State == v1alpha1.PayerIncoming || k.State == v1alpha1.PayerActive)
	})
}

// wholeRevisions gives all keys of the revisions that the keys have, in
// whatever state, so that a Job's keys stay the same while labels change.
func (d *decision) wholeRevisions(keys []Key) []Key {
	return d.pick(func(k Key) bool {
		return slices.ContainsFunc(keys, func(other Key) bool { return other.Revision == k.Revision })
	})
}

// named gives the Job of the name, nil without one.
func (d *decision) named(name string) *Job {
	for i := range d.Jobs {
		if d.Jobs[i].Name == name {
			return &d.Jobs[i]
		}
	}
	return nil
}

func (d *decision) job(target int32, step v1alpha1.RotationStep) *Job {
	return d.named(JobName(d.pool, target, step))
}

// inputs is the hash of what a Job is for. Names of Secrets are enough: a key
// never changes under its name.
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
