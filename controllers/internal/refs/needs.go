package refs

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// need is one value that the spec names.
type need struct {
	object
	key string
	// field is where the spec names it.
	field string
	check check
}

type object struct {
	kind Kind
	name string
}

// needs lists what the spec names, payers in their order. Pull secrets are among
// them only where a label is required: the kubelet reads these, and says itself
// what is wrong with one.
func needs(spec *v1alpha1.RelayPoolSpec, pullSecrets bool) []need {
	var all []need
	secret := func(field string, ref *v1alpha1.SecretKey, check check) {
		if ref != nil {
			all = append(all, need{object{Secret, ref.Name}, ref.Key, field, check})
		}
	}
	secret("spec.database.urlFrom", &spec.Database.URLFrom, databaseURL)
	for _, e := range spec.Solana.Endpoints {
		secret(fmt.Sprintf("spec.solana.endpoints[%s].urlFrom", e.Name), e.URLFrom, httpURL)
	}
	for i := range spec.FeePayers.Secrets {
		secret(fmt.Sprintf("spec.feePayers.secrets[%d]", i), &spec.FeePayers.Secrets[i], payerKey)
	}
	if spec.Swap != nil {
		secret("spec.swap.router.urlFrom", spec.Swap.Router.URLFrom, httpURL)
		secret("spec.swap.router.apiKeyFrom", spec.Swap.Router.APIKeyFrom, headerValue)
	}
	secret("spec.api.keysFrom", spec.API.KeysFrom, someLine)
	if pullSecrets {
		for _, s := range spec.Template.ImagePullSecrets {
			all = append(all, need{object{Secret, s.Name}, "", fmt.Sprintf("spec.template.imagePullSecrets[%s]", s.Name), pullSecret})
		}
	}
	vk := spec.Pool.VerifyingKey
	all = append(all, need{object{ConfigMap, vk.Name}, vk.Key, "spec.pool.verifyingKey", verifyingKey})
	if p := spec.Pool.Profile.ConfigMap; p != nil {
		all = append(all, need{object{ConfigMap, p.Name}, p.Key, "spec.pool.profile.configMap", profile})
	}
	return all
}
