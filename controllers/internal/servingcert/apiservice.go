package servingcert

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is the field manager that owns the caBundle. Another field manager applies the
// rest of the APIService, and so leaves the caBundle alone.
const fieldOwner = "relaypool-operator"

// defaultTrustDelay is the default of Options.TrustDelay.
const defaultTrustDelay = 10 * time.Minute

// kindAPIService returns the kind of APIServices. Its use with unstructured objects avoids
// linking the package that defines the type.
func kindAPIService() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
}

// publish sets the caBundle of the APIService to the authorities of the state. It reports
// whether the APIService has trusted the next pair's authority for long enough. An
// APIService that refers to another Service is foreign, and is not changed.
func (k *Keeper) publish(ctx context.Context, s *state) (trusted bool, err error) {
	found := new(unstructured.Unstructured)
	found.SetGroupVersionKind(kindAPIService())
	err = k.Live.Get(ctx, client.ObjectKey{Name: k.APIService}, found)
	if apierrors.IsNotFound(err) {
		k.forgetTrust()
		return false, fmt.Errorf("the APIService %s does not exist, so this server gets no requests: install it with config/external-metrics or the chart's externalMetrics.enabled, or give --external-metrics-listen=none", k.APIService)
	}
	if err != nil {
		return false, fmt.Errorf("read the APIService %s: %w", k.APIService, err)
	}
	namespace, _, _ := unstructured.NestedString(found.Object, "spec", "service", "namespace")
	name, _, _ := unstructured.NestedString(found.Object, "spec", "service", "name")
	if namespace != k.Namespace || name != k.Service {
		k.forgetTrust()
		return false, fmt.Errorf("the APIService %s leads to the Service %s/%s, expected %s/%s: another adapter serves external metrics here, and only one can; see docs/guides/scaling.md", k.APIService, namespace, name, k.Namespace, k.Service)
	}
	want := bundle(s.withoutExpired(k.Now()).authorities)
	encoded, _, _ := unstructured.NestedString(found.Object, "spec", "caBundle")
	got, _ := base64.StdEncoding.DecodeString(encoded)
	if !bytes.Equal(got, want) {
		// The caBundle differs, for example because somebody removed an authority. The trust
		// delay starts again at the next RenewOnce, when the APIService has the new bundle.
		k.forgetTrust()
		if err := k.applyBundle(ctx, want); err != nil {
			return false, err
		}
		return false, nil
	}
	return k.recordTrust(s), nil
}

func (k *Keeper) applyBundle(ctx context.Context, bundle []byte) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(bundle)}}}
	object.SetGroupVersionKind(kindAPIService())
	object.SetName(k.APIService)
	err := k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldOwner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the caBundle of the APIService %s: %w", k.APIService, err)
	}
	return nil
}

// recordTrust records that the APIService trusts all authorities of the state. It reports
// whether the APIService has trusted the next pair's authority for long enough.
func (k *Keeper) recordTrust(s *state) bool {
	signer := s.signerOf(s.next)
	if signer == nil {
		k.forgetTrust()
		return false
	}
	if serial := signer.SerialNumber.String(); k.trustedSerial != serial {
		k.trustedSince, k.trustedSerial = k.Now(), serial
	}
	return k.Now().Sub(k.trustedSince) >= k.TrustDelay
}

// forgetTrust forgets the time since which the APIService has trusted the next pair's
// authority.
func (k *Keeper) forgetTrust() { k.trustedSince, k.trustedSerial = time.Time{}, "" }
