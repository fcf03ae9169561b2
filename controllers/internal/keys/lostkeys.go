package keys

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// findLost finds keys that the status shows in use although their Secrets no longer exist.
// A new key under the same name would hide that money was lost. So no new key is made. The only
// exception is a lost incoming key without known funds, which a new key replaces.
func (d *decision) findLost() {
	newest := max(d.newest(v1alpha1.PayerActive), d.newest(v1alpha1.PayerIncoming))
	for _, p := range d.Pool.Status.FeePayers {
		revision, _, ok := numbersOf(d.pool, p.SecretName)
		replaceable := p.State == v1alpha1.PayerIncoming && (p.BalanceLamports == nil || *p.BalanceLamports == 0)
		if !ok || replaceable || p.State == v1alpha1.PayerRetired || d.secretNameInUse(p.SecretName) || revision < newest {
			continue
		}
		d.lost = append(d.lost, p)
		d.problem(v1alpha1.ReasonSecretNotFound, p.SecretName, fmt.Sprintf(
			"Secret %s, the generated key of the fee payer %s, is missing, and the operator makes no new key under its name: restore the Secret from a backup; "+
				"if there is none, raise spec.feePayers.rotation.revision to have new keys made", p.SecretName, p.Address))
	}
}
