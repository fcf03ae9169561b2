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

// fieldOwner is who the caBundle belongs to: whoever applies the rest of the
// APIService leaves it alone then.
const fieldOwner = "relaypool-operator"

// kindAPIService is not of a package that the operator would link for it.
func kindAPIService() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
}

// publish makes the caBundle of the APIService what the state trusts, and tells
// whether it has trusted the next pair's authority for long enough. An APIService
// that leads elsewhere is somebody else's, and is not touched.
func (k *Keeper) publish(ctx context.Context, s *state) (trusted bool, err error) {
	found := new(unstructured.Unstructured)
	found.SetGroupVersionKind(kindAPIService())
	err = k.Live.Get(ctx, client.ObjectKey{Name: k.APIService}, found)
	if apierrors.IsNotFound(err) {
		k.distrust()
		return false, fmt.Errorf("the APIService %s is not there, so that nobody asks this server: install it with config/external-metrics or the chart's externalMetrics.enabled, or give --external-metrics-listen=none", k.APIService)
	}
	if err != nil {
		return false, fmt.Errorf("read the APIService %s: %w", k.APIService, err)
	}
	namespace, _, _ := unstructured.NestedString(found.Object, "spec", "service", "namespace")
	name, _, _ := unstructured.NestedString(found.Object, "spec", "service", "name")
	if namespace != k.Namespace || name != k.Service {
		k.distrust()
		return false, fmt.Errorf("the APIService %s leads to the Service %s/%s, expected %s/%s: another adapter serves external metrics here, and only one can; see docs/guides/scaling.md", k.APIService, namespace, name, k.Namespace, k.Service)
	}
	want := bundle(s.tidied(k.Now()).authorities)
	encoded, _, _ := unstructured.NestedString(found.Object, "spec", "caBundle")
	has, _ := base64.StdEncoding.DecodeString(encoded)
	if !bytes.Equal(has, want) {
		if err := k.applyBundle(ctx, want); err != nil {
			return false, err
		}
		// From when on it was trusted is known at the next reading.
		return false, nil
	}
	return k.trust(s), nil
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

// trust notes that the APIService trusts all of the state, and tells whether it
// has trusted the next pair for long enough.
func (k *Keeper) trust(s *state) bool {
	signer := s.signerOf(s.next)
	if signer == nil {
		k.distrust()
		return false
	}
	if serial := signer.SerialNumber.String(); k.trustedSerial != serial {
		k.trusted, k.trustedSerial = k.Now(), serial
	}
	return k.Now().Sub(k.trusted) >= k.Settle
}

// distrust forgets what was seen of the APIService.
func (k *Keeper) distrust() { k.trusted, k.trustedSerial = time.Time{}, "" }
