package servingcert

import (
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

var _ dynamiccertificates.CertKeyContentProvider = (*Keeper)(nil)

// Name implements dynamiccertificates.CertKeyContentProvider.
func (k *Keeper) Name() string { return "the operator's serving certificate" }

// CurrentCertKeyContent returns certificate and key as PEM, and nil before Ready.
func (k *Keeper) CurrentCertKeyContent() (cert, key []byte) {
	k.mutex.RLock()
	defer k.mutex.RUnlock()
	if k.served.current == nil {
		return nil, nil
	}
	return k.served.current.cert, k.served.current.key
}

// AddListener registers a listener for every change.
func (k *Keeper) AddListener(l dynamiccertificates.Listener) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.listeners = append(k.listeners, l)
}

// Ready is closed once there is a certificate.
func (k *Keeper) Ready() <-chan struct{} { return k.ready }

// Expires returns when the served certificate expires, and zero before Ready.
func (k *Keeper) Expires() time.Time {
	k.mutex.RLock()
	defer k.mutex.RUnlock()
	if k.served.current == nil {
		return time.Time{}
	}
	return k.served.current.leaf.NotAfter
}
