package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

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

// inputsHash returns the hash of what a Job is for: its step, its revision, and its keys or the
// request. The names of Secrets stand for the keys, because the key in a Secret never
// changes.
func inputsHash(want JobWanted, request string) string {
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
