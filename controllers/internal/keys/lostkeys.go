package keys

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// findLost finds keys that the status shows in use although their Secrets no longer exist.
// A new key under the same name would hide that money was lost. So no new key is made. The only
// exception is a lost incoming key without known funds, which a new key replaces.
func (d *decision) findLost() {
	for _, p := range d.Pool.Status.FeePayers {
		revision, _, ok := numbersOf(d.pool, p.SecretName)
		replaceable := p.State == v1alpha1.PayerIncoming && (p.BalanceLamports == nil || *p.BalanceLamports == 0)
		if !ok || replaceable || p.State == v1alpha1.PayerRetired || d.secretNameInUse(p.SecretName) || d.replaced(p, revision) {
			continue
		}
		d.lost = append(d.lost, p)
		d.problem(v1alpha1.ReasonSecretNotFound, p.SecretName, fmt.Sprintf(
			lostKeyText, p.SecretName, p.Address))
		if !p.Lost { // otherwise an earlier pass has reported it
			d.event(corev1.EventTypeWarning, v1alpha1.EventKeyLost, "Read", p.SecretName, d.plan.Problems[len(d.plan.Problems)-1].Message)
		}
	}
}

// lostKeyText is the message about a lost key, of its Secret and its address.
const lostKeyText = "Secret %s, the generated key of the fee payer %s, is missing, and the operator makes no new key under its name: restore the Secret from a backup; " +
	"if there is none, raise spec.feePayers.rotation.revision to have new keys made"

// replaced reports whether newer keys have taken the place of a lost key, as the message advises.
// For a draining key, whose funds the rotation under way would have swept, that takes another
// rotation.
func (d *decision) replaced(p v1alpha1.FeePayerStatus, revision int32) bool {
	if p.State == v1alpha1.PayerDraining {
		return revision < max(d.newest(v1alpha1.PayerActive), d.newest(v1alpha1.PayerIncoming))-1
	}
	return revision < d.newest(v1alpha1.PayerActive)
}
