package keys

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// BackupRequired reports whether keys stay unfunded until a copy of them is acknowledged.
func BackupRequired(pool *v1alpha1.RelayPool) bool {
	g := pool.Spec.FeePayers.Generate
	return g != nil && g.Backup != nil && g.Backup.Required
}

// AcknowledgeBackup returns what to do about a key without a copy: a sentence with a command.
func AcknowledgeBackup(namespace string, k Key) string {
	return fmt.Sprintf("copy Secret %s to a safe place, then acknowledge it: kubectl annotate secret %s -n %s --overwrite %s=%s",
		k.Secret, k.Secret, namespace, AnnotationBackedUp, k.Address)
}

// waitsForBackup reports whether somebody has yet to acknowledge a copy that the spec asks for.
func (f *Facts) waitsForBackup(pool *v1alpha1.RelayPool) bool {
	g := pool.Spec.FeePayers.Generate
	return g != nil && g.Backup != nil && slices.ContainsFunc(f.Keys, Key.needsBackup)
}

// needsBackup reports whether the key has no copy and holds funds, or will. A retired key is swept.
func (k Key) needsBackup() bool { return k.State != v1alpha1.PayerRetired && !k.BackedUp }

// waitForBackup reports whether a required copy of one of the new keys is missing, and makes the
// rotation wait for it. Once the Job that funds the keys exists it is too late to wait.
func (d *decision) waitForBackup(target int32) bool {
	if !BackupRequired(d.Pool) || d.job(target, v1alpha1.RotationFund) != nil {
		return false
	}
	missing := d.pick(func(k Key) bool { return k.Revision == target && !k.BackedUp })
	if len(missing) == 0 {
		return false
	}
	first := slices.MinFunc(missing, func(a, b Key) int { return cmp.Compare(a.Index, b.Index) })
	d.wait(fmt.Sprintf("%d of the new keys have no acknowledged copy (spec.feePayers.generate.backup.required): %s",
		len(missing), AcknowledgeBackup(d.Pool.Namespace, first)))
	return true
}
