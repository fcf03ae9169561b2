package refs

import (
	"context"
	"crypto/tls"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// databaseValues lists the values with which relays connect to the database.
func databaseValues(database *v1alpha1.Database) []namedValue {
	const field = "spec.database."
	url := database.URLSecretRef
	all := []namedValue{{object: object{Secret, url.Name}, key: url.Key, field: field + "urlSecretRef", format: databaseURL}}
	all = append(all, authorities(field+"caFrom", database.CAFrom)...)
	if ref := database.ClientCertificateSecretRef; ref != nil {
		secret := object{Secret, ref.Name}
		all = append(all,
			namedValue{object: secret, key: corev1.TLSCertKey, field: field + "clientCertificateSecretRef", format: clientCertificate},
			namedValue{object: secret, key: corev1.TLSPrivateKeyKey, field: field + "clientCertificateSecretRef", format: clientKey})
	}
	return all
}

// authorities lists the value of a field caFrom, if the field is set.
func authorities(field string, from *v1alpha1.CertificatesSource) (all []namedValue) {
	if from == nil {
		return nil
	}
	if ref := from.SecretRef; ref != nil {
		all = append(all, namedValue{object: object{Secret, ref.Name}, key: ref.Key, field: field + ".secretRef", format: certificates})
	}
	if ref := from.ConfigMapRef; ref != nil {
		all = append(all, namedValue{object: object{ConfigMap, ref.Name}, key: ref.Key, field: field + ".configMapRef", format: certificates})
	}
	return all
}

// urlFormat returns the format of a server's URL. Only a server with TLS has a certificate that an
// authority vouches for, and relays refuse another URL at their start.
func urlFormat(caFrom *v1alpha1.CertificatesSource) valueFormat {
	if caFrom == nil {
		return httpURL
	}
	return httpsURL
}

// Certificates reads the value that a field caFrom of a RelayPool names. Errors name the object and
// the key.
func (r *Resolver) Certificates(ctx context.Context, pool types.NamespacedName, from *v1alpha1.CertificatesSource) (string, error) {
	all := authorities("", from)
	if len(all) == 0 {
		return "", errors.New("caFrom names neither a Secret nor a ConfigMap")
	}
	n := all[0]
	n.field = ""
	return r.value(ctx, pool, n)
}

// pairFault returns what is wrong with a client's key that does not belong to the certificate in
// the same Secret. A missing or malformed certificate is a fault of its own.
func pairFault(values map[string][]byte) string {
	certificate := values[corev1.TLSCertKey]
	if !isCertificateChain(certificate) {
		return ""
	}
	if _, err := tls.X509KeyPair(certificate, values[corev1.TLSPrivateKeyKey]); err != nil {
		// The error is left out, because it can repeat words of the content.
		return "is not the private key of the certificate in the key " + corev1.TLSCertKey + ": expected " + clientKey.expected()
	}
	return ""
}
