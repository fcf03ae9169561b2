package keys

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/relay/keyfile"
)

// keyOf returns the key in a Secret, or why the Secret is not a key of this RelayPool.
func keyOf(pool string, secret *corev1.Secret, revision, index int32) (key Key, fault string) {
	l := secret.Labels
	state, ok := stateOf(l[LabelState])
	switch {
	case l[LabelPool] != pool, l[LabelRevision] != strconv.Itoa(int(revision)), l[LabelIndex] != strconv.Itoa(int(index)):
		return Key{}, fmt.Sprintf("its labels %s, %s and %s are not those of fee payer %d of revision %d of the RelayPool %s", LabelPool, LabelRevision, LabelIndex, index, revision, pool)
	case !ok:
		return Key{}, fmt.Sprintf("its label %s is none of active, incoming, draining and retired", LabelState)
	case secret.Immutable == nil || !*secret.Immutable:
		return Key{}, "it is not immutable"
	}
	value, ok := secret.Data[DataKey]
	if !ok {
		return Key{}, fmt.Sprintf("it has no key %s", DataKey)
	}
	private, err := keyfile.Parse(value)
	if err != nil {
		return Key{}, fmt.Sprintf("the value of its key %s is not a fee payer key: %v", DataKey, err)
	}
	defer clear(private)
	key = Key{
		Revision: revision, Index: index,
		Secret: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion, Created: secret.CreationTimestamp.Time,
		Address: keyfile.Address(private), State: state,
	}
	key.BackedUp = secret.Annotations[AnnotationBackedUp] == key.Address
	key.AnnotationOutdated = secret.Annotations[AnnotationAddress] != key.Address
	return key, ""
}

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
