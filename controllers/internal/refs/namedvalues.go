package refs

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// namedValue is one value that the spec names.
type namedValue struct {
	object
	key string
	// field is the field of the spec that names the value.
	field  string
	format valueFormat
}

type object struct {
	kind Kind
	name string
}

// namedValues lists the values that the spec names, payers in their order. It includes pull
// secrets if pullSecrets is set, which means that the operator requires a label on them. Without
// this requirement, the operator does not have to read pull secrets, because the kubelet reads
// them and reports what is wrong with them.
func namedValues(spec *v1alpha1.RelayPoolSpec, pullSecrets bool) []namedValue {
	var all []namedValue
	secret := func(field string, ref *v1alpha1.SecretKeyReference, format valueFormat) {
		if ref != nil {
			all = append(all, namedValue{object{Secret, ref.Name}, ref.Key, field, format})
		}
	}
	secret("spec.database.urlSecretRef", &spec.Database.URLSecretRef, databaseURL)
	for _, e := range spec.Solana.Endpoints {
		secret(fmt.Sprintf("spec.solana.endpoints[%s].urlSecretRef", e.Name), e.URLSecretRef, httpURL)
	}
	for i := range spec.FeePayers.SecretRefs {
		secret(fmt.Sprintf("spec.feePayers.secretRefs[%d]", i), &spec.FeePayers.SecretRefs[i], payerKey)
	}
	all = append(all, signerValues(spec.FeePayers.Signers)...)
	if spec.Swap != nil {
		secret("spec.swap.router.urlSecretRef", spec.Swap.Router.URLSecretRef, httpURL)
		secret("spec.swap.router.apiKeySecretRef", spec.Swap.Router.APIKeySecretRef, headerValue)
		for _, r := range spec.Swap.FallbackRouters {
			secret(fmt.Sprintf("spec.swap.fallbackRouters[%s].urlSecretRef", r.Name), r.URLSecretRef, httpURL)
			secret(fmt.Sprintf("spec.swap.fallbackRouters[%s].apiKeySecretRef", r.Name), r.APIKeySecretRef, headerValue)
		}
	}
	secret("spec.api.keysSecretRef", spec.API.KeysSecretRef, nonEmpty)
	if pullSecrets {
		for _, s := range spec.Template.ImagePullSecrets {
			all = append(all, namedValue{object{Secret, s.Name}, "", fmt.Sprintf("spec.template.imagePullSecrets[%s]", s.Name), pullSecret})
		}
	}
	vk := spec.Pool.VerifyingKeyConfigMapRef
	all = append(all, namedValue{object{ConfigMap, vk.Name}, vk.Key, "spec.pool.verifyingKeyConfigMapRef", verifyingKey})
	if p := spec.Pool.Profile.ConfigMapRef; p != nil {
		all = append(all, namedValue{object{ConfigMap, p.Name}, p.Key, "spec.pool.profile.configMapRef", profile})
	}
	return all
}
