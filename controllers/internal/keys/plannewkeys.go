package keys

import "github.com/relaypool/relaypool/api/v1alpha1"

// planMissingKeys plans the missing keys of a revision, and reports whether there are any.
func (d *decision) planMissingKeys(revision int32, state v1alpha1.FeePayerState) bool {
	var missing []NewKey
	for i := range wantedCount(d.Pool) {
		name := SecretName(d.pool, revision, i)
		if !d.secretNameInUse(name) {
			missing = append(missing, NewKey{Secret: name, Revision: revision, Index: i, State: state})
		}
	}
	d.plan.Create = append(d.plan.Create, missing...)
	return len(missing) > 0
}
