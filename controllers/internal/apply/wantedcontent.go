package apply

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// content returns the content to apply: what package build made, with the RelayPool's namespace
// and with the RelayPool as the owner.
func (p *pass) content(ref Ref, o build.Object) (map[string]any, error) {
	raw, err := json.Marshal(o.Config)
	if err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	value, err := decode(raw)
	if err != nil {
		return nil, err
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the builder's configuration is not an object")
	}
	u := unstructured.Unstructured{Object: content}
	if u.GroupVersionKind() != ref.Kind || u.GetName() != ref.Name {
		return nil, fmt.Errorf("the builder's configuration has the kind %s and the name %q", u.GroupVersionKind(), u.GetName())
	}
	u.SetNamespace(p.owner.Namespace)
	u.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(p.owner, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind)),
	})
	return u.Object, nil
}

// canonical returns the wanted content in the form in which the API server stores it. For an
// optional kind, canonical returns wanted unchanged.
func (p *pass) canonical(ref Ref, wanted map[string]any) (map[string]any, error) {
	typed := typedObject(ref.Kind)
	if typed == nil {
		return wanted, nil
	}
	return canonical(wanted, typed)
}

func copyOf(content map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: content}).DeepCopy().Object
}
