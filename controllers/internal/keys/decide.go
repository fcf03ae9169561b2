package keys

import (
	"fmt"
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// Decide returns what to do about the keys of a RelayPool, and what to report about
// them. It is pure: the next step follows from labels, Jobs and the rollout alone,
// and the status only records what was reported before.
func Decide(in Input) Plan {
	d := &decision{Input: in, pool: in.Pool.Name}
	d.plan.Problems = slices.Clone(in.Keys.Problems)
	if wantedCount(in.Pool) > 0 {
		d.findDuplicates()
		d.useGeneratedKeys()
		d.plan.NotBackedUp = d.pick(Key.needsBackup)
	}
	d.useNamedSecrets()
	d.sweepUnused()
	d.setPayers()
	d.addEvents()
	if in.Pool.Spec.Paused {
		d.plan.Create, d.plan.Label, d.plan.Job, d.plan.DeleteJobs = nil, nil, nil, nil
	}
	return d.plan
}

// decision is one run of Decide.
type decision struct {
	Input
	pool string
	plan Plan
	lost []v1alpha1.FeePayerStatus // keys in the status whose Secrets no longer exist
}

// restoreAddressAnnotations plans to restore the annotation with a key's address, which
// people may use to fund the key.
func (d *decision) restoreAddressAnnotations() {
	for _, k := range d.Keys.Keys {
		if k.AnnotationOutdated && !slices.ContainsFunc(d.plan.Label, func(l LabelChange) bool { return l.Key.Secret == k.Secret }) {
			d.plan.Label = append(d.plan.Label, LabelChange{Key: k, State: k.State})
		}
	}
}

// useFirstRevision plans keys for a RelayPool that has no key in use. The keys are active at
// once, because they replace no old keys.
func (d *decision) useFirstRevision() {
	wanted, newest := wantedRevision(d.Pool), d.newest(v1alpha1.PayerRetired)
	if newest >= 0 && wanted <= newest {
		d.problem(v1alpha1.ReasonNoPayers, "", fmt.Sprintf(
			"all generated fee payer keys are retired, up to revision %d, and retired keys are not used again: raise spec.feePayers.rotation.revision to %d", newest, newest+1))
		return
	}
	d.planMissingKeys(wanted, v1alpha1.PayerActive)
}

func (k Key) mount() Mount { return Mount{Secret: k.Secret, Key: DataKey} }

func mounts(keys []Key) []Mount {
	var all []Mount
	for _, k := range keys {
		all = append(all, k.mount())
	}
	return all
}

// pick returns the keys for which test is true.
func (d *decision) pick(test func(Key) bool) []Key {
	var picked []Key
	for _, k := range d.Keys.Keys {
		if test(k) {
			picked = append(picked, k)
		}
	}
	return picked
}

// newest returns the highest revision with a key in the state, or -1 if there is none. oldest
// returns the lowest revision.
func (d *decision) newest(state v1alpha1.FeePayerState) int32 {
	for _, k := range slices.Backward(d.Keys.Keys) {
		if k.State == state {
			return k.Revision
		}
	}
	return -1
}

func (d *decision) oldest(state v1alpha1.FeePayerState) int32 {
	for _, k := range d.Keys.Keys {
		if k.State == state {
			return k.Revision
		}
	}
	return -1
}

// hasKey reports whether the revision has a key in the state.
func (d *decision) hasKey(revision int32, state v1alpha1.FeePayerState) bool {
	return slices.ContainsFunc(d.Keys.Keys, func(k Key) bool { return k.Revision == revision && k.State == state })
}

// hasOlderKey reports whether there is a key of a lower revision.
func (d *decision) hasOlderKey(revision int32) bool {
	return len(d.Keys.Keys) > 0 && d.Keys.Keys[0].Revision < revision
}

func (d *decision) problem(reason, secret, message string) {
	d.plan.Problems = append(d.plan.Problems, refs.Problem{Kind: refs.Secret, Name: secret, Reason: reason, Message: message})
}

func (d *decision) hasProblem(reason string) bool {
	return slices.ContainsFunc(d.plan.Problems, func(p refs.Problem) bool { return p.Reason == reason })
}

// usableKeys returns the keys of one revision that the fleet uses or is about to use.
func (d *decision) usableKeys(revision int32) []Key {
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

// jobNamed returns the Job with the name, or nil if there is none.
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
