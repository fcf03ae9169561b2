package build

import (
	"cmp"
	"path"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// vaultAudience is the default audience of the token with which pods log in to Vault. It is
	// not the API server's, so the token is of no use there.
	vaultAudience = "vault"
	// vaultTokenSeconds is how long such a token is valid. The kubelet renews it earlier.
	vaultTokenSeconds = 3600
)

// signer is an item of the relay's list of signers.
type signer struct {
	Name         string        `json:"name"`
	Address      string        `json:"address"`
	VaultTransit *vaultTransit `json:"vaultTransit,omitempty"`
	AWSKMS       *awsKMS       `json:"awsKMS,omitempty"`
	GCPKMS       *gcpKMS       `json:"gcpKMS,omitempty"`
}

type vaultTransit struct {
	URL             string `json:"url"`
	Key             string `json:"key"`
	KeyVersion      int32  `json:"keyVersion"`
	Mount           string `json:"mount,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	CAFile          string `json:"caFile,omitempty"`
	TokenFile       string `json:"tokenFile,omitempty"`
	KubernetesRole  string `json:"kubernetesRole,omitempty"`
	KubernetesMount string `json:"kubernetesMount,omitempty"`
	JWTFile         string `json:"jwtFile,omitempty"`
}

type awsKMS struct {
	KeyID           string `json:"keyID"`
	Region          string `json:"region,omitempty"`
	Endpoint        string `json:"endpoint,omitempty"`
	CredentialsFile string `json:"credentialsFile,omitempty"`
}

type gcpKMS struct {
	KeyVersion      string `json:"keyVersion"`
	Endpoint        string `json:"endpoint,omitempty"`
	CredentialsFile string `json:"credentialsFile,omitempty"`
}

// signers returns the relay's list of signers.
func signers(declared []v1alpha1.Signer) []signer {
	items := make([]signer, len(declared))
	for i, s := range declared {
		items[i] = signer{Name: s.Name, Address: s.Address}
		if v := s.VaultTransit; v != nil {
			items[i].VaultTransit = vaultItem(s.Name, v)
		}
		if a := s.AWSKMS; a != nil {
			items[i].AWSKMS = &awsKMS{a.KeyID, a.Region, a.Endpoint, credentialsFile(s.Name, a.CredentialsSecretRef)}
		}
		if g := s.GCPKMS; g != nil {
			items[i].GCPKMS = &gcpKMS{g.KeyVersion, g.Endpoint, credentialsFile(s.Name, g.CredentialsSecretRef)}
		}
	}
	return items
}

func vaultItem(name string, v *v1alpha1.VaultTransit) *vaultTransit {
	item := &vaultTransit{URL: v.URL, Key: v.Key, KeyVersion: v.KeyVersion, Mount: v.Mount, Namespace: v.Namespace}
	if v.CAFrom != nil {
		item.CAFile = contract.SignerCAFile(name)
	}
	if v.TokenSecretRef != nil {
		item.TokenFile = contract.SignerTokenFile(name)
	}
	if k := v.Kubernetes; k != nil {
		item.KubernetesRole, item.KubernetesMount, item.JWTFile = k.Role, k.Mount, contract.SignerJWTFile(name)
	}
	return item
}

func credentialsFile(name string, from *v1alpha1.SecretKeyReference) string {
	if from == nil {
		return ""
	}
	return contract.SignerCredentialsFile(name)
}

// signers adds the list of signers, and the files with which the relay logs in to their services.
func (f *files) signers(configMap string, declared []v1alpha1.Signer) {
	if len(declared) > 0 {
		f.configMap(configMap, path.Base(contract.SignersFile), contract.SignersFile)
	}
	for i := range declared {
		name := declared[i].Name
		if v := declared[i].VaultTransit; v != nil {
			f.vault(name, v)
		}
		if a := declared[i].AWSKMS; a != nil {
			f.secretKey(a.CredentialsSecretRef, contract.SignerCredentialsFile(name))
		}
		if g := declared[i].GCPKMS; g != nil {
			f.secretKey(g.CredentialsSecretRef, contract.SignerCredentialsFile(name))
		}
	}
}

func (f *files) vault(name string, v *v1alpha1.VaultTransit) {
	f.certificates(v.CAFrom, contract.SignerCAFile(name))
	f.secretKey(v.TokenSecretRef, contract.SignerTokenFile(name))
	if k := v.Kubernetes; k != nil {
		f.sources = append(f.sources, corev1ac.VolumeProjection().
			WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().
				WithAudience(cmp.Or(k.Audience, vaultAudience)).
				WithExpirationSeconds(vaultTokenSeconds).
				WithPath(pathInVolume(contract.SignerJWTFile(name)))))
	}
}
