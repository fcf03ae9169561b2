package keys

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// findDuplicates reports named Secrets and signers that have the address of a generated key. The
// operator cannot rotate such a key, because the fleet would still sign with it.
func (d *decision) findDuplicates() {
	for _, p := range d.Refs {
		if d.isGenerated(p.Address) {
			d.duplicate(p.Secret, fmt.Sprintf("spec.feePayers.secretRefs: Secret %s, key %s", p.Secret, p.Key), p.Address)
		}
	}
	for _, s := range d.Pool.Spec.FeePayers.Signers {
		if d.isGenerated(s.Address) {
			d.duplicate("", fmt.Sprintf("spec.feePayers.signers[%s]", s.Name), s.Address)
		}
	}
}

func (d *decision) duplicate(secret, named, address string) {
	d.problem(v1alpha1.ReasonDuplicateKey, secret, fmt.Sprintf(
		"%s is the fee payer %s, whose key the operator generated: remove it from the list, or the fleet would count its funds twice", named, address))
	d.Blocked = "a fee payer is both named and generated: the condition SecretsResolved names it"
}
