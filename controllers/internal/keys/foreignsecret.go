package keys

import (
	"fmt"
	"slices"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// waitForForeignSecret reports whether a Secret that is not a key has the name of one of the
// revision's keys. If so, it makes the rotation wait until a person moves the Secret.
func (d *decision) waitForForeignSecret(revision int32) bool {
	for i := range wantedCount(d.Pool) {
		name := SecretName(d.pool, revision, i)
		if slices.ContainsFunc(d.Keys.Problems, func(p refs.Problem) bool { return p.Name == name }) {
			d.wait("Secret " + name + " was not made by the operator: restore the original, or store it under another name")
			return true
		}
	}
	return false
}

// secretNameInUse reports whether a Secret has the name, or had the name and must not be
// replaced before a person knows of the loss.
func (d *decision) secretNameInUse(name string) bool {
	return slices.ContainsFunc(d.Keys.Keys, func(k Key) bool { return k.Secret == name }) ||
		slices.ContainsFunc(d.Keys.Problems, func(p refs.Problem) bool { return p.Name == name }) ||
		slices.ContainsFunc(d.lost, func(p v1alpha1.FeePayerStatus) bool { return p.SecretName == name })
}

func foreignSecret(secret, fault string) refs.Problem {
	return refs.Problem{
		Kind: refs.Secret, Name: secret, Reason: v1alpha1.ReasonSecretForeign,
		Message: fmt.Sprintf("Secret %s has the name of a generated fee payer key but was not made by the operator: %s. It was not changed: "+
			"restore it if it is a damaged key, or store it under another name", secret, fault),
	}
}
