package refs

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// signerValues lists the values with which the relay logs in to the key services of signers.
func signerValues(signers []v1alpha1.Signer) (all []namedValue) {
	for i := range signers {
		field := fmt.Sprintf("spec.feePayers.signers[%s].", signers[i].Name)
		secret := func(name string, ref *v1alpha1.SecretKeyReference, format valueFormat) {
			if ref != nil {
				all = append(all, namedValue{object: object{Secret, ref.Name}, key: ref.Key, field: field + name, format: format})
			}
		}
		if v := signers[i].VaultTransit; v != nil {
			secret("vaultTransit.tokenSecretRef", v.TokenSecretRef, signerToken)
			all = append(all, authorities(field+"vaultTransit.caFrom", v.CAFrom)...)
		}
		if a := signers[i].AWSKMS; a != nil {
			secret("awsKMS.credentialsSecretRef", a.CredentialsSecretRef, awsCredentials)
		}
		if g := signers[i].GCPKMS; g != nil {
			secret("gcpKMS.credentialsSecretRef", g.CredentialsSecretRef, gcpCredentials)
		}
	}
	return all
}
