package keys

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/onchain"
)

// addEvents adds the events for the differences from the last status. It also sets the time
// at which the present step of the rotation began.
func (d *decision) addEvents() {
	before := map[string]v1alpha1.FeePayerStatus{}
	for _, p := range d.Pool.Status.FeePayers {
		before[p.SecretName] = p
	}
	for _, p := range d.plan.Payers {
		if p.SecretName != "" {
			d.addPayerEvents(p, before)
		}
	}
	next, last := d.plan.Rotation, d.Pool.Status.Rotation
	if next == nil {
		d.plan.Rotation = last.DeepCopy() // the status keeps showing the last rotation
		return
	}
	if d.Pool.Spec.Paused && d.plan.Rotating {
		next.Message = "spec.paused is true"
	}
	next.Message = shorten(next.Message, maxMessage)
	if last != nil && last.Revision == next.Revision && last.Step == next.Step {
		next.Since = last.Since.DeepCopy()
	} else {
		next.Since = &metav1.Time{Time: d.Now}
		if last != nil || d.plan.Rotating {
			d.event(corev1.EventTypeNormal, v1alpha1.EventRotationStep, string(next.Step), "",
				fmt.Sprintf("The rotation of fee payer keys to revision %d reached the step %s", next.Revision, next.Step))
		}
	}
	if d.plan.Failed && (last == nil || last.Message != next.Message) {
		d.event(corev1.EventTypeWarning, v1alpha1.EventRotationFailed, string(next.Step), "", next.Message)
	}
}

// addPayerEvents adds the events of one payer. It compares the payer with the last status of
// its Secret.
func (d *decision) addPayerEvents(p v1alpha1.FeePayerStatus, before map[string]v1alpha1.FeePayerStatus) {
	last, known := before[p.SecretName]
	var key *Key
	for i := range d.Keys.Keys {
		if d.Keys.Keys[i].Secret == p.SecretName {
			key = &d.Keys.Keys[i]
		}
	}
	switch {
	case known && last.Address != p.Address && d.onlyPayer(p.SecretName):
		d.event(corev1.EventTypeWarning, v1alpha1.EventKeyChanged, "Read", p.SecretName,
			fmt.Sprintf("The key in Secret %s has the address %s; before, it had the address %s", p.SecretName, p.Address, last.Address))
	case known, key == nil, p.State == v1alpha1.PayerRetired:
	case d.isAdopted(key):
		d.addAdoptedEvent(p)
	default:
		d.event(corev1.EventTypeNormal, v1alpha1.EventKeyGenerated, "Generate", p.SecretName,
			fmt.Sprintf("A key for the fee payer %s was made in Secret %s", p.Address, p.SecretName))
	}
	// The last status may show the balance from before a sweep. So a high balance in the last
	// status does not mean that an event has reported the funds that the key holds now.
	unreported := lamports(last) < balanceUnit || d.wasFunded() && d.readInCurrentStep(d.Balances[p.Address])
	if p.State == v1alpha1.PayerRetired && last.State == v1alpha1.PayerRetired && lamports(p) >= balanceUnit && unreported {
		d.event(corev1.EventTypeWarning, v1alpha1.EventRetiredKeyFunded, "Read", p.SecretName,
			fmt.Sprintf("The retired fee payer %s (Secret %s) holds %s SOL", p.Address, p.SecretName, onchain.SOL(uint64(lamports(p))))) //nolint:gosec // not negative
	}
}

// wasFunded reports whether the last status had the condition FeePayersFunded with the
// reason Funded.
func (d *decision) wasFunded() bool {
	c := meta.FindStatusCondition(d.Pool.Status.Conditions, v1alpha1.ConditionFeePayersFunded)
	return c != nil && c.Reason == v1alpha1.ReasonFunded
}

// onlyPayer reports whether the Secret has exactly one payer, now and in the last status.
func (d *decision) onlyPayer(secret string) bool {
	count := func(payers []v1alpha1.FeePayerStatus) (n int) {
		for _, p := range payers {
			if p.SecretName == secret {
				n++
			}
		}
		return n
	}
	return count(d.plan.Payers) == 1 && count(d.Pool.Status.FeePayers) == 1
}

func (d *decision) event(kind, reason, action, secret, note string) {
	d.plan.Events = append(d.plan.Events, Event{Type: kind, Reason: reason, Action: action, Secret: secret, Note: shorten(note, maxNote)})
}

// addAdoptedEvent adds the event of a payer whose key is adopted.
func (d *decision) addAdoptedEvent(p v1alpha1.FeePayerStatus) {
	d.event(corev1.EventTypeNormal, v1alpha1.EventKeyAdopted, "Adopt", p.SecretName,
		fmt.Sprintf("The fee payer %s is used again: an earlier RelayPool of this name left its key in Secret %s", p.Address, p.SecretName))
}
