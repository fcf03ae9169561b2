package keys

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// useGeneratedKeys determines from the labels how far a rotation has proceeded, and plans
// the next step.
func (d *decision) useGeneratedKeys() {
	d.findLost()
	d.selectMounts()
	incoming, active := d.newest(v1alpha1.PayerIncoming), d.newest(v1alpha1.PayerActive)
	draining := d.newest(v1alpha1.PayerDraining)
	switch {
	case incoming >= 0:
		d.prepareNewKeys(incoming)
	case active < 0 && draining < 0:
		d.useFirstRevision()
	case active < 0:
		d.problem(v1alpha1.ReasonNoPayers, "", fmt.Sprintf(
			"no generated fee payer key is active, and some are draining: label a key that the fleet is to use with %s=active", LabelState))
	case draining >= 0 || d.oldest(v1alpha1.PayerActive) < active:
		d.startUsingNewKeys(active)
	default:
		d.keepOrStartRotation(active)
	}
	d.restoreAddressAnnotations()
	if d.plan.Mounted == nil && d.plan.Create == nil && !d.hasProblem(v1alpha1.ReasonNoPayers) {
		d.problem(v1alpha1.ReasonNoPayers, "", "there is no usable generated fee payer key: the other messages about its Secrets give the reason")
	}
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
