package pool

import (
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/keys"
)

// keysBackedUp reports on the copies of generated keys. It is absent unless the spec asks for them.
func keysBackedUp(f *Facts, p *Plan) verdict {
	g := f.Pool.Spec.FeePayers.Generate
	if g == nil || g.Backup == nil {
		return verdict{}
	}
	if !f.KeysKnown {
		return unreadable("the Secrets of generated fee payers")
	}
	var missing []string
	for _, k := range p.Keys.NotBackedUp {
		missing = append(missing, keys.AcknowledgeBackup(f.Pool.Namespace, k))
	}
	if len(missing) > 0 {
		return conditionFalse(v1alpha1.ReasonNotBackedUp, joinFirst(missing, 4))
	}
	if len(p.Keys.Create) > 0 || len(f.Keys.Keys) == 0 {
		return conditionUnknown(v1alpha1.ReasonNotChecked, "the generated keys are not made yet")
	}
	return conditionTrue(v1alpha1.ReasonBackedUp, "a copy of every generated key in use is acknowledged")
}

// copyFirst returns what to do before a payer is funded, or "" if it may be funded now.
func copyFirst(f *Facts, p *Plan, address string) string {
	if !keys.BackupRequired(f.Pool) {
		return ""
	}
	i := slices.IndexFunc(p.Keys.NotBackedUp, func(k keys.Key) bool { return k.Address == address })
	if i < 0 {
		return ""
	}
	return "do not fund the fee payer " + address + " yet: " + keys.AcknowledgeBackup(f.Pool.Namespace, p.Keys.NotBackedUp[i])
}
