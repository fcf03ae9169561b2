package keys

import (
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// useNamedSecrets makes the fleet use the Secrets that the user named, beside generated keys if
// there are any. A rotation does not concern them. A named key that is also a generated key is not
// used by its name: a rotation could not take it away from the pods.
func (d *decision) useNamedSecrets() {
	for _, p := range d.Refs {
		if wantedCount(d.Pool) == 0 || !d.isGenerated(p.Address) {
			d.plan.Mounted = append(d.plan.Mounted, Mount{Secret: p.Secret, Key: p.Key})
		}
	}
}

// isGenerated reports whether a generated key, in any state, has the address.
func (d *decision) isGenerated(address string) bool {
	return slices.ContainsFunc(d.Keys.Keys, func(k Key) bool { return k.Address == address })
}

// isNamed reports whether a named Secret or a signer has the address.
func (d *decision) isNamed(address string) bool {
	return slices.ContainsFunc(d.Refs, func(p refs.Payer) bool { return p.Address == address }) ||
		slices.ContainsFunc(d.Pool.Spec.FeePayers.Signers, func(s v1alpha1.Signer) bool { return s.Address == address })
}

// selectMounts selects one whole revision for the fleet: the newest that has an active key
// and no incoming key. If a cut-over was interrupted when only some of the new keys were
// active, selectMounts selects the older revision, whose keys are all still active.
func (d *decision) selectMounts() {
	revision := int32(-1)
	for _, k := range d.Keys.Keys {
		if k.State == v1alpha1.PayerActive && !d.hasKey(k.Revision, v1alpha1.PayerIncoming) {
			revision = max(revision, k.Revision)
		}
	}
	if revision < 0 {
		revision = d.newest(v1alpha1.PayerActive)
	}
	for _, k := range d.Keys.Keys {
		if k.State == v1alpha1.PayerActive && k.Revision == revision {
			d.plan.Mounted = append(d.plan.Mounted, k.mount())
			d.plan.RolloutInputs = append(d.plan.RolloutInputs, refs.Object{Kind: refs.Secret, Name: k.Secret, UID: k.UID})
		}
	}
}
