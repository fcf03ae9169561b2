package keys

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

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
	key.AnnotationOutdated = secret.Annotations[AnnotationAddress] != key.Address
	return key, ""
}
