package refs

import (
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
)

// withSigners adds a signer of every kind to a stand, and the objects that they name.
func withSigners(t *testing.T) *stand {
	t.Helper()
	s := newStand(t)
	ref := func(name, key string) *v1alpha1.SecretKeyReference {
		return &v1alpha1.SecretKeyReference{Name: name, Key: key}
	}
	s.pool.Spec.FeePayers.Signers = []v1alpha1.Signer{
		{Name: "one", Address: "1", VaultTransit: &v1alpha1.VaultTransit{
			TokenSecretRef: ref("vault", "token"), CAFrom: &v1alpha1.CertificatesSource{SecretRef: ref("vault", "ca.crt")},
		}},
		{Name: "two", Address: "2", VaultTransit: &v1alpha1.VaultTransit{
			Kubernetes: &v1alpha1.VaultKubernetesLogin{Role: "r"},
			CAFrom:     &v1alpha1.CertificatesSource{ConfigMapRef: &v1alpha1.ConfigMapKeyReference{Name: "authorities", Key: "ca.crt"}},
		}},
		{Name: "three", Address: "3", AWSKMS: &v1alpha1.AWSKMS{CredentialsSecretRef: ref("aws", "credentials")}},
		{Name: "four", Address: "4", GCPKMS: &v1alpha1.GCPKMS{CredentialsSecretRef: ref("gcp", "key.json")}},
		{Name: "five", Address: "5", GCPKMS: &v1alpha1.GCPKMS{}},
	}
	authority := certificate(t)
	s.reader.secrets["vault"] = map[string][]byte{"token": []byte(canary + "\n"), "ca.crt": []byte(authority)}
	s.reader.secrets["aws"] = map[string][]byte{"credentials": []byte("[default]\naws_secret_access_key = " + canary)}
	s.reader.secrets["gcp"] = map[string][]byte{"key.json": []byte(`{"private_key": "` + canary + `"}`)}
	s.reader.configs["authorities"] = map[string]string{"ca.crt": "two of them\n" + authority + authority}
	return s
}

func certificate(t *testing.T) string {
	t.Helper()
	content, _ := certificateAndKey(t)
	return string(content)
}

// Relays read the files of signers again, so a new token must not replace the pods.
func TestChangedValuesOfSignersReplaceNoPods(t *testing.T) {
	t.Parallel()
	s := withSigners(t)
	facts := s.resolve(t)
	if !facts.Complete() {
		t.Fatalf("problems %v, unread %v; want none", facts.Problems, facts.Unread)
	}
	inRollout := func(name string) bool {
		return slices.ContainsFunc(facts.Resolved, func(o Object) bool { return o.Name == name })
	}
	for _, name := range []string{"vault", "aws", "gcp", "authorities"} {
		if inRollout(name) {
			t.Errorf("%s is among the resolved objects, so its changes would cause a rollout", name)
		}
	}
	// A value beside those of the signer that pods read only at their start.
	s.reader.secrets["vault"]["keys"] = []byte(canary)
	s.pool.Generation, s.pool.Spec.API.KeysSecretRef = 2, &v1alpha1.SecretKeyReference{Name: "vault", Key: "keys"}
	if facts = s.resolve(t); !inRollout("vault") {
		t.Error("a Secret with the API keys is not among the resolved objects, so new keys would not reach the pods")
	}
}

func TestProblemsOfSigners(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*stand)
		policy tenancy.Policy
		reason string
		parts  []string
	}{
		"no Secret of a token": {func(s *stand) { s.pool.Spec.FeePayers.Signers[0].VaultTransit.TokenSecretRef.Name = "none" }, tenancy.Policy{},
			v1alpha1.ReasonSecretNotFound, []string{"spec.feePayers.signers[one].vaultTransit.tokenSecretRef", "Secret none", "key token"}},
		"a token of two lines": {func(s *stand) { s.reader.secrets["vault"]["token"] = []byte(canary + "\n" + canary) }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"Secret vault", "key token", "one line"}},
		"no key in the ConfigMap of authorities": {func(s *stand) { s.reader.configs["authorities"] = nil }, tenancy.Policy{},
			v1alpha1.ReasonConfigMapKeyMissing, []string{"spec.feePayers.signers[two].vaultTransit.caFrom.configMapRef", "ConfigMap authorities", "certificates in PEM"}},
		"authorities that are no PEM": {func(s *stand) { s.reader.secrets["vault"]["ca.crt"] = []byte(canary) }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"spec.feePayers.signers[one].vaultTransit.caFrom.secretRef", "certificates in PEM, at least one"}},
		"a private key in place of authorities": {func(s *stand) {
			s.reader.secrets["vault"]["ca.crt"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte(canary)})
		}, tenancy.Policy{}, v1alpha1.ReasonSecretMalformed, []string{"certificates in PEM, at least one"}},
		"a certificate that is none": {func(s *stand) {
			s.reader.configs["authorities"]["ca.crt"] += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(canary)}))
		}, tenancy.Policy{}, v1alpha1.ReasonConfigMapMalformed, []string{"ConfigMap authorities", "certificates in PEM, at least one"}},
		"empty credentials of AWS": {func(s *stand) { s.reader.secrets["aws"]["credentials"] = nil }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"spec.feePayers.signers[three].awsKMS.credentialsSecretRef", "shared credentials file"}},
		"credentials of Google Cloud that are not JSON": {func(s *stand) { s.reader.secrets["gcp"]["key.json"] = []byte(canary) }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"spec.feePayers.signers[four].gcpKMS.credentialsSecretRef", "JSON object"}},
		"a signer with the address of a named key": {func(s *stand) { s.pool.Spec.FeePayers.Signers[4].Address = s.payers[0] }, tenancy.Policy{},
			v1alpha1.ReasonDuplicateKey, []string{"spec.feePayers.secretRefs[1]", "Secret payers", "spec.feePayers.signers[five]", "once"}},
		"a token in the Secret of a generated key": {func(s *stand) {
			s.reader.labels = map[string]map[string]string{"aws": {build.LabelPool: "p", build.LabelPayerState: "active"}}
		}, tenancy.Policy{}, v1alpha1.ReasonGeneratedKey, []string{"spec.feePayers.signers[three].awsKMS.credentialsSecretRef"}},
		"a ConfigMap without the label": {func(*stand) {}, tenancy.Policy{
			RequireLabel: true, Usable: []string{"n/db", "n/rpc", "n/router", "n/api", "n/payers", "n/vk", "n/profile", "n/vault", "n/aws", "n/gcp"},
		}, v1alpha1.ReasonConfigMapNotUsable, []string{"spec.feePayers.signers[two].vaultTransit.caFrom.configMapRef"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withSigners(t)
			test.change(s)
			s.resolver.Policy = test.policy
			facts := s.resolve(t)
			if len(facts.Problems) != 1 || facts.Problems[0].Reason != test.reason {
				t.Fatalf("problems are %v, want one %s", facts.Problems, test.reason)
			}
			for _, part := range test.parts {
				if !strings.Contains(facts.Problems[0].Message, part) {
					t.Errorf("message is %q, want %q in it", facts.Problems[0].Message, part)
				}
			}
		})
	}
}
