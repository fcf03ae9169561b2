package keys

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// isAdopted reports whether an earlier RelayPool of this name left the key: the key is older
// than this RelayPool.
func (d *decision) isAdopted(k *Key) bool {
	return k.Created.Before(d.Pool.CreationTimestamp.Time)
}

// addAdoptedEvent adds the event of a payer whose key is adopted.
func (d *decision) addAdoptedEvent(p v1alpha1.FeePayerStatus) {
	d.event(corev1.EventTypeNormal, v1alpha1.EventKeyAdopted, "Adopt", p.SecretName,
		fmt.Sprintf("The fee payer %s is used again: an earlier RelayPool of this name left its key in Secret %s", p.Address, p.SecretName))
}
