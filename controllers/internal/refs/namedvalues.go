package refs

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// namedValue is one value that the spec names.
type namedValue struct {
	object
	key string
	// field is the field of the spec that names the value.
	field  string
	format valueFormat
	// optional: pods start without the object.
	optional bool
	// relayVariables: each of the object's keys is the name of a variable of the relay's container.
	relayVariables bool
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
			all = append(all, namedValue{object: object{Secret, ref.Name}, key: ref.Key, field: field, format: format})
		}
	}
	all = append(all, databaseValues(&spec.Database)...)
	for _, e := range spec.Solana.Endpoints {
		field := fmt.Sprintf("spec.solana.endpoints[%s].", e.Name)
		secret(field+"urlSecretRef", e.URLSecretRef, urlFormat(e.CAFrom))
		all = append(all, authorities(field+"caFrom", e.CAFrom)...)
	}
	for i := range spec.FeePayers.SecretRefs {
		secret(fmt.Sprintf("spec.feePayers.secretRefs[%d]", i), &spec.FeePayers.SecretRefs[i], payerKey)
	}
	all = append(all, signerValues(spec.FeePayers.Signers)...)
	if spec.Swap != nil {
		router := &spec.Swap.Router
		secret("spec.swap.router.urlSecretRef", router.URLSecretRef, urlFormat(router.CAFrom))
		secret("spec.swap.router.apiKeySecretRef", router.APIKeySecretRef, headerValue)
		all = append(all, authorities("spec.swap.router.caFrom", router.CAFrom)...)
		for _, r := range spec.Swap.FallbackRouters {
			field := fmt.Sprintf("spec.swap.fallbackRouters[%s].", r.Name)
			secret(field+"urlSecretRef", r.URLSecretRef, urlFormat(r.CAFrom))
			secret(field+"apiKeySecretRef", r.APIKeySecretRef, headerValue)
			all = append(all, authorities(field+"caFrom", r.CAFrom)...)
		}
	}
	secret("spec.api.keysSecretRef", spec.API.KeysSecretRef, nonEmpty)
	if pullSecrets {
		for _, s := range spec.Template.ImagePullSecrets {
			all = append(all, namedValue{object: object{Secret, s.Name}, field: fmt.Sprintf("spec.template.imagePullSecrets[%s]", s.Name), format: pullSecret})
		}
	}
	all = append(all, podValues(spec, pullSecrets)...)
	vk := spec.Pool.VerifyingKeyConfigMapRef
	all = append(all, namedValue{object: object{ConfigMap, vk.Name}, key: vk.Key, field: "spec.pool.verifyingKeyConfigMapRef", format: verifyingKey})
	if p := spec.Pool.Profile.ConfigMapRef; p != nil {
		all = append(all, namedValue{object: object{ConfigMap, p.Name}, key: p.Key, field: "spec.pool.profile.configMapRef", format: profile})
	}
	return all
}

// podValues lists the objects that spec.template.podTemplate names. They are read only to know
// whether they exist and may be used.
func podValues(spec *v1alpha1.RelayPoolSpec, pullSecrets bool) []namedValue {
	var all []namedValue
	for _, r := range build.PodReferences(spec) {
		n := namedValue{object: object{ConfigMap, r.Name}, field: r.Field, format: podFile, optional: r.Optional, relayVariables: r.RelayVariables}
		if r.Secret {
			n.kind = Secret
		}
		switch {
		case r.Pull && !pullSecrets:
			continue
		case r.Pull:
			n.format = pullSecret
		case r.Variables:
			n.format = podVariables
		}
		all = append(all, n)
	}
	return all
}
