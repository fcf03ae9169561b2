package refs

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
)

// certificateAndKey returns a certificate for its own key, both in PEM.
func certificateAndKey(t *testing.T) (certificate, key []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	content, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: content}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// withCertificates adds a reference to certificates to every field of a stand that can have one,
// and the objects that they name. The database's Secrets are as CloudNativePG writes them.
func withCertificates(t *testing.T) *stand {
	t.Helper()
	s := newStand(t)
	inSecret := func(name, key string) *v1alpha1.CertificatesSource {
		return &v1alpha1.CertificatesSource{SecretRef: &v1alpha1.SecretKeyReference{Name: name, Key: key}}
	}
	inConfigMap := func(name, key string) *v1alpha1.CertificatesSource {
		return &v1alpha1.CertificatesSource{ConfigMapRef: &v1alpha1.ConfigMapKeyReference{Name: name, Key: key}}
	}
	spec := &s.pool.Spec
	spec.Database = v1alpha1.Database{
		URLSecretRef: v1alpha1.SecretKeyReference{Name: "pg-app", Key: "uri"}, CAFrom: inSecret("pg-ca", "ca.crt"),
		ClientCertificateSecretRef: &v1alpha1.SecretReference{Name: "pg-client"},
	}
	spec.Solana.Endpoints[0].CAFrom = inConfigMap("authorities", "rpc.crt")
	spec.Swap.Router.CAFrom = inConfigMap("authorities", "router.crt")
	spec.Swap.FallbackRouters = []v1alpha1.FallbackRouter{{
		Name: "second", URLSecretRef: &v1alpha1.SecretKeyReference{Name: "router", Key: "url"}, CAFrom: inSecret("second", "ca.crt"),
	}}
	authority, authorityKey := certificateAndKey(t)
	certificate, key := certificateAndKey(t)
	delete(s.reader.secrets, "db")
	s.reader.secrets["pg-app"] = map[string][]byte{
		"uri": []byte("postgresql://app:" + canary + "@pg-rw.n:5432/app"), "password": []byte(canary), "username": []byte("app"),
		"jdbc-uri": []byte("jdbc:postgresql://pg-rw.n:5432/app?password=" + canary + "&user=app"),
	}
	s.reader.secrets["pg-ca"] = map[string][]byte{"ca.crt": authority, "ca.key": authorityKey}
	s.reader.secrets["pg-client"] = map[string][]byte{"tls.crt": certificate, "tls.key": key}
	s.reader.secrets["second"] = map[string][]byte{"ca.crt": slices.Concat([]byte("# two\n"), authority, authority)}
	s.reader.configs["authorities"] = map[string]string{"rpc.crt": string(authority), "router.crt": string(authority)}
	return s
}

func TestChangedCertificatesReplaceNoPods(t *testing.T) {
	t.Parallel()
	s := withCertificates(t)
	facts := s.resolve(t)
	if !facts.Complete() {
		t.Fatalf("problems %v, unread %v; want none", facts.Problems, facts.Unread)
	}
	var resolved []string
	for _, o := range facts.Resolved {
		resolved = append(resolved, o.Name)
	}
	for _, name := range []string{"pg-ca", "pg-client", "second", "authorities"} {
		if slices.Contains(resolved, name) {
			t.Errorf("%s is among the resolved objects, so its changes would cause a rollout", name)
		}
	}
	if !slices.Contains(resolved, "pg-app") {
		t.Error("the Secret of the database's URL is not among the resolved objects, so a new password would not reach the pods")
	}
}

func TestProblemsOfCertificates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*testing.T, *stand)
		policy tenancy.Policy
		reason string
		parts  []string
	}{
		"no Secret of the database's authorities": {func(_ *testing.T, s *stand) { delete(s.reader.secrets, "pg-ca") }, tenancy.Policy{},
			v1alpha1.ReasonSecretNotFound, []string{"spec.database.caFrom.secretRef", "Secret pg-ca", "key ca.crt", "create"}},
		"no key with the database's authorities": {func(_ *testing.T, s *stand) { delete(s.reader.secrets["pg-ca"], "ca.crt") }, tenancy.Policy{},
			v1alpha1.ReasonSecretKeyMissing, []string{"spec.database.caFrom.secretRef", "no key ca.crt among its 1", "certificates in PEM"}},
		"an authority's key in place of its certificate": {func(_ *testing.T, s *stand) { s.pool.Spec.Database.CAFrom.SecretRef.Key = "ca.key" }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"spec.database.caFrom.secretRef", "certificates in PEM, at least one, and nothing else"}},
		"a key beside the authority, which relays refuse": {func(_ *testing.T, s *stand) {
			s.reader.secrets["pg-ca"]["ca.crt"] = slices.Concat(s.reader.secrets["pg-ca"]["ca.crt"], s.reader.secrets["pg-ca"]["ca.key"])
		}, tenancy.Policy{}, v1alpha1.ReasonSecretMalformed, []string{"spec.database.caFrom.secretRef", "nothing else in PEM"}},
		"half of an endpoint's authorities": {func(_ *testing.T, s *stand) {
			text := s.reader.configs["authorities"]["rpc.crt"]
			s.reader.configs["authorities"]["rpc.crt"] = text[:len(text)/2]
		}, tenancy.Policy{}, v1alpha1.ReasonConfigMapMalformed, []string{"spec.solana.endpoints[one].caFrom.configMapRef", "ConfigMap authorities", "rpc.crt"}},
		"no key with the router's authorities": {func(_ *testing.T, s *stand) { delete(s.reader.configs["authorities"], "router.crt") }, tenancy.Policy{},
			v1alpha1.ReasonConfigMapKeyMissing, []string{"spec.swap.router.caFrom.configMapRef", "ConfigMap authorities"}},
		"a text in place of a fallback router's authorities": {func(_ *testing.T, s *stand) { s.reader.secrets["second"]["ca.crt"] = []byte(canary) }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"spec.swap.fallbackRouters[second].caFrom.secretRef", "Secret second"}},
		"authorities of an endpoint without TLS": {func(_ *testing.T, s *stand) { s.reader.secrets["rpc"]["url"] = []byte("http://rpc.example/" + canary) }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"spec.solana.endpoints[one].urlSecretRef", "https://", "because caFrom is set"}},
		"no Secret of the client certificate": {func(_ *testing.T, s *stand) { s.pool.Spec.Database.ClientCertificateSecretRef.Name = "pg-app" }, tenancy.Policy{},
			v1alpha1.ReasonSecretKeyMissing, []string{"spec.database.clientCertificateSecretRef", "Secret pg-app", "no key tls."}},
		"a client certificate without its key": {func(_ *testing.T, s *stand) { delete(s.reader.secrets["pg-client"], "tls.key") }, tenancy.Policy{},
			v1alpha1.ReasonSecretKeyMissing, []string{"spec.database.clientCertificateSecretRef", "no key tls.key", "private key in PEM"}},
		"a client certificate that is none": {func(_ *testing.T, s *stand) { s.reader.secrets["pg-client"]["tls.crt"] = []byte(canary) }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"key tls.crt", "a certificate in PEM"}},
		"a client certificate with the key of another": {func(t *testing.T, s *stand) {
			_, s.reader.secrets["pg-client"]["tls.key"] = certificateAndKey(t)
		}, tenancy.Policy{}, v1alpha1.ReasonSecretMalformed, []string{"key tls.key", "not the private key of the certificate in the key tls.crt"}},
		"a client key that is none": {func(_ *testing.T, s *stand) { s.reader.secrets["pg-client"]["tls.key"] = []byte(canary) }, tenancy.Policy{},
			v1alpha1.ReasonSecretMalformed, []string{"key tls.key", "without a password"}},
		"authorities without the label": {func(*testing.T, *stand) {}, tenancy.Policy{
			RequireLabel: true, Usable: []string{"n/pg-app", "n/pg-client", "n/rpc", "n/router", "n/second", "n/authorities", "n/api", "n/payers", "n/vk", "n/profile"},
		}, v1alpha1.ReasonSecretNotUsable, []string{"spec.database.caFrom.secretRef"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withCertificates(t)
			test.change(t, s)
			s.resolver.Policy = test.policy
			facts := s.resolve(t)
			if len(facts.Problems) == 0 || facts.Complete() {
				t.Fatalf("problems are %v, want %s", facts.Problems, test.reason)
			}
			for _, p := range facts.Problems {
				if p.Reason != test.reason {
					t.Errorf("reason is %s, want %s", p.Reason, test.reason)
				}
				for _, part := range test.parts {
					if !strings.Contains(p.Message, part) {
						t.Errorf("message is %q, want %q in it", p.Message, part)
					}
				}
			}
		})
	}
}

// The database alone may have a client certificate without authorities: these are then the system's.
func TestAClientCertificateNeedsNoAuthorities(t *testing.T) {
	t.Parallel()
	s := withCertificates(t)
	s.pool.Spec.Database.CAFrom = nil
	delete(s.reader.secrets, "pg-ca")
	if facts := s.resolve(t); !facts.Complete() {
		t.Errorf("problems %v, unread %v; want none", facts.Problems, facts.Unread)
	}
}

// The operator's own checks of the chain trust these certificates.
func TestCertificatesAreReadAtTheMomentOfUse(t *testing.T) {
	t.Parallel()
	s := withCertificates(t)
	from, inSecret := s.pool.Spec.Solana.Endpoints[0].CAFrom, s.pool.Spec.Swap.FallbackRouters[0].CAFrom
	read := func(from *v1alpha1.CertificatesSource) (string, error) {
		got, err := s.resolver.Certificates(t.Context(), client.ObjectKeyFromObject(s.pool), from)
		if err != nil && (got != "" || strings.Contains(err.Error(), canary)) {
			t.Errorf("the value has %d characters, the error is %v; want no value", len(got), err)
		}
		return got, err
	}
	for _, certificate := range []string{s.reader.configs["authorities"]["rpc.crt"], string(s.reader.secrets["second"]["ca.crt"])} {
		s.reader.configs["authorities"]["rpc.crt"] = certificate
		if got, err := read(from); err != nil || got != strings.TrimSpace(certificate) {
			t.Errorf("the value has %d characters, error %v; want the ConfigMap's", len(got), err)
		}
	}
	if got, err := read(inSecret); err != nil || !bytes.HasPrefix([]byte(got), []byte("# two")) {
		t.Errorf("the value has %d characters, error %v; want the Secret's", len(got), err)
	}
	s.reader.secrets["second"]["ca.crt"] = []byte(canary)
	if _, err := read(inSecret); err == nil || !strings.HasPrefix(err.Error(), "Secret second has a key ca.crt whose value has 6 bytes that are not certificates") {
		t.Errorf("error is %v, want the Secret, its key and what was expected", err)
	}
	s.resolver.Policy = tenancy.Policy{RequireLabel: true}
	if _, err := read(from); err == nil || !strings.Contains(err.Error(), "ConfigMap authorities may not be used by this RelayPool") {
		t.Errorf("error is %v, want the reason for the refusal", err)
	}
	s.reader.fails["authorities"] = apierrors.NewForbidden(corev1.Resource("configmaps"), "authorities", errors.New("no"))
	if _, err := read(from); err == nil || !strings.Contains(err.Error(), "read ConfigMap authorities") {
		t.Errorf("error is %v, want one of the reading", err)
	}
	if _, err := read(&v1alpha1.CertificatesSource{}); err == nil {
		t.Error("a source that names nothing is read")
	}
}
