package keys

import (
	"fmt"
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/onchain"
)

// unused returns the generated keys that the fleet no longer uses: the retired keys, or all
// keys when the spec generates none. A key that a named Secret or a signer also has is in use.
func (d *decision) unused() []Key {
	return d.pick(func(k Key) bool {
		if wantedCount(d.Pool) > 0 {
			return k.State == v1alpha1.PayerRetired
		}
		return !d.isNamed(k.Address)
	})
}

// sweepUnused reports unused keys with funds. If a person requests a sweep by the annotation,
// sweepUnused plans a Job that moves the funds, once for every new value of the annotation.
func (d *decision) sweepUnused() {
	unused, token := d.unused(), d.Pool.Annotations[AnnotationSweepRetired]
	var funded []Key
	for _, k := range unused {
		if b, known := d.Balances[k.Address]; known && b.Lamports > minMovable && d.readInCurrentStep(b) {
			funded = append(funded, k)
		}
	}
	to := d.sweepTarget()
	if len(funded) > 0 {
		d.problem(v1alpha1.ReasonRetiredKeyFunded, "", d.fundedMessage(funded, to))
	}
	if token == "" || d.plan.Rotating || len(to) == 0 || len(unused) == 0 || d.plan.Writes() {
		return
	}
	revision := d.Keys.Keys[len(d.Keys.Keys)-1].Revision
	want := JobWanted{
		Name: JobName(d.pool, revision, v1alpha1.RotationSweep), Step: v1alpha1.RotationSweep, Revision: revision,
		From: mounts(unused), To: to, Token: token,
	}
	want.InputsHash = inputsHash(want, token)
	existing := d.jobNamed(want.Name)
	started := existing != nil && existing.InputsHash == want.InputsHash
	// A retired key was drained. A key that the spec no longer uses was not drained: a
	// rollout under way can still start a pod that signs with the key.
	drained := wantedCount(d.Pool) > 0
	if !started && (len(funded) == 0 || d.whyStillMounted(unused, drained) != "") {
		return
	}
	d.runJob(want, AnnotationSweepRetired)
}

// sweepTarget returns which keys may receive swept funds: generated keys if there are any in use,
// because named ones may be about to be removed, else named keys. It leaves out keys without the copy
// that is required. Nothing goes to a signer: the operator cannot ask whether the key service has the
// key of that address, and if not, all would be lost.
func (d *decision) sweepTarget() (to []Mount) {
	generated := false
	for _, m := range d.plan.Mounted {
		i := slices.IndexFunc(d.Keys.Keys, func(k Key) bool { return k.mount() == m })
		if wantedCount(d.Pool) == 0 || i < 0 {
			continue
		}
		generated = true
		if d.Keys.Keys[i].BackedUp || !BackupRequired(d.Pool) {
			to = append(to, m)
		}
	}
	if !generated {
		return d.plan.Mounted
	}
	return to
}

// readInCurrentStep reports whether a balance was read since the present step of the
// rotation began. An older balance may show funds that were swept meanwhile.
func (d *decision) readInCurrentStep(b Balance) bool {
	next, last := d.plan.Rotation, d.Pool.Status.Rotation
	switch {
	case next == nil, b.At.IsZero():
		return true
	case last == nil:
		return !d.plan.Rotating
	case last.Revision != next.Revision || last.Step != next.Step:
		return false
	}
	return last.Since == nil || b.readAfter(last.Since.Time)
}

// fundedMessage says which unused keys hold funds, and how to move them to the keys that may receive
// them.
func (d *decision) fundedMessage(funded []Key, to []Mount) string {
	var holdings []string
	for _, k := range funded {
		holdings = append(holdings, fmt.Sprintf("%s (Secret %s) holds %s SOL", k.Address, k.Secret, onchain.SOL(d.Balances[k.Address].Lamports)))
	}
	message := fmt.Sprintf("fee payer keys that are no longer used hold funds: %s. ", someNames(holdings))
	if len(d.plan.Mounted) == 0 {
		return message + "Move them by relay sweep all, to an address whose key you have seen sign"
	}
	if len(to) == 0 && len(d.plan.NotBackedUp) > 0 {
		return message + "To move them to the keys in use, first " + AcknowledgeBackup(d.Pool.Namespace, d.plan.NotBackedUp[0])
	}
	return message + fmt.Sprintf("To move them to the keys in use: kubectl -n %s annotate relaypool %s --overwrite %s=\"$(date +%%s)\"",
		d.Pool.Namespace, d.pool, AnnotationSweepRetired)
}
