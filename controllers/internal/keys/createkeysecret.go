package keys

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/keyfile"
)

// create makes one key. If its Secret exists already, the Secret stays as it is: another
// operator, or this operator before it died, has made the key, and the next reading finds
// it. The status shows the address only after the key has been read back.
func (w *Writer) create(ctx context.Context, pool *v1alpha1.RelayPool, k NewKey) error {
	private, err := keyfile.Generate(w.Random)
	if err != nil {
		return fmt.Errorf("generate fee payer key: %w", err)
	}
	defer clear(private)
	content, address := keyfile.Format(private), keyfile.Address(private)
	defer clear(content)
	immutable := true
	// The Secret has no owner, so that no deletion of the RelayPool takes it along.
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pool.Namespace, Name: k.Secret, Labels: labels(pool.Name, k),
			Annotations: map[string]string{AnnotationAddress: address},
		},
		Immutable: &immutable, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{DataKey: content},
	}
	err = w.Client.Create(ctx, secret, client.FieldOwner(FieldOwner))
	for _, value := range secret.Data { // the copy from the API server's answer
		clear(value)
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create Secret %s: %w", k.Secret, withoutValues(err))
	}
	w.Log.InfoContext(ctx, "fee payer key secret created", "namespace", pool.Namespace, "secret", k.Secret, "address", address)
	return nil
}
