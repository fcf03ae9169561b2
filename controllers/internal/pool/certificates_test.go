package pool_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/relay/contract"
)

// issued is a certificate with its key, both in PEM as CloudNativePG writes them.
type issued struct {
	certificate, key string
	parsed           *x509.Certificate
	private          *ecdsa.PrivateKey
}

// issue makes a certificate; without an issuer it is an authority's.
func issue(t *testing.T, issuer *issued) *issued {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), IsCA: issuer == nil, BasicConstraintsValid: true}
	parent, signer := template, private
	if issuer != nil {
		parent, signer = issuer.parsed, issuer.private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return &issued{inPEM("CERTIFICATE", der), inPEM("EC PRIVATE KEY", encoded), parsed, private}
}

func inPEM(kind string, content []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

// createCloudNativePGSecrets makes the Secrets of a cluster of CloudNativePG with the name pg:
// pg-app and pg-ca, which its operator makes, and pg-client, which its kubectl plugin makes.
func createCloudNativePGSecrets(t *testing.T, s *pooltest.Stand) (authority *issued) {
	t.Helper()
	const password = "a?b/c@d e"
	host := "pg-rw." + s.Namespace
	uri := url.URL{Scheme: "postgresql", User: url.UserPassword("app", password), Host: host + ":5432", Path: "app"}
	fqdn := uri
	fqdn.Host = host + ".svc.cluster.local:5432"
	s.Create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pg-app", Labels: map[string]string{"cnpg.io/userType": "app", "cnpg.io/reload": "true"}},
		Type:       corev1.SecretTypeBasicAuth,
		StringData: map[string]string{
			"username": "app", "user": "app", "password": password, "dbname": "app", "host": "pg-rw", "port": "5432",
			"pgpass": "pg-rw:5432:app:app:" + password + "\n", "uri": uri.String(), "fqdn-uri": fqdn.String(),
			"jdbc-uri":      "jdbc:postgresql://" + uri.Host + "/app?password=x&user=app",
			"fqdn-jdbc-uri": "jdbc:postgresql://" + fqdn.Host + "/app?password=x&user=app",
		},
	})
	authority = issue(t, nil)
	s.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pg-ca"}, StringData: map[string]string{"ca.crt": authority.certificate, "ca.key": authority.key}})
	client := issue(t, authority)
	s.Create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pg-client"}, Type: corev1.SecretTypeTLS,
		StringData: map[string]string{corev1.TLSCertKey: client.certificate, corev1.TLSPrivateKeyKey: client.key},
	})
	return authority
}

// withCloudNativePG makes a RelayPool use the Secrets of createCloudNativePGSecrets.
func withCloudNativePG(p *v1alpha1.RelayPool) {
	p.Spec.Database = v1alpha1.Database{
		URLSecretRef:               v1alpha1.SecretKeyReference{Name: "pg-app", Key: "uri"},
		CAFrom:                     &v1alpha1.CertificatesSource{SecretRef: &v1alpha1.SecretKeyReference{Name: "pg-ca", Key: "ca.crt"}},
		ClientCertificateSecretRef: &v1alpha1.SecretReference{Name: "pg-client"},
	}
}

func TestSecretsOfCloudNativePGAreUsedAsTheyAre(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	authority := createCloudNativePGSecrets(t, s)
	ready(t, s, "demo", withCloudNativePG)
	s.Await(t, "demo", v1alpha1.ConditionAccepted, "True/Valid")
	s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "True/Resolved")
	template := func() corev1.PodTemplateSpec {
		var d appsv1.Deployment
		s.Get(t, "demo", &d)
		return d.Spec.Template
	}
	before := template()
	mounted := map[string]string{}
	for _, source := range before.Spec.Volumes[slices.IndexFunc(before.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "files" })].Projected.Sources {
		if source.Secret != nil && strings.HasPrefix(source.Secret.Name, "pg-") {
			mounted[contract.Root+"/"+source.Secret.Items[0].Path] = source.Secret.Name + " " + source.Secret.Items[0].Key
		}
	}
	want := map[string]string{
		contract.DatabaseURLFile: "pg-app uri", contract.DatabaseCAFile: "pg-ca ca.crt",
		contract.DatabaseClientCertFile: "pg-client tls.crt", contract.DatabaseClientKeyFile: "pg-client tls.key",
	}
	if diff := cmp.Diff(want, mounted); diff != "" {
		t.Errorf("mounted files (-want +got):\n%s", diff)
	}

	// CloudNativePG renews its authority and the certificates. Relays read them again.
	pooltest.Change(t, s, "pg-ca", &corev1.Secret{}, func(secret *corev1.Secret) {
		renewed := issue(t, nil)
		secret.StringData = map[string]string{"ca.crt": authority.certificate + renewed.certificate, "ca.key": renewed.key}
	})
	pooltest.Change(t, s, "pg-client", &corev1.Secret{}, func(secret *corev1.Secret) {
		secret.StringData = map[string]string{corev1.TLSPrivateKeyKey: issue(t, nil).key}
	})
	broken := s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "False/SecretMalformed")
	if !strings.Contains(broken.Message, "spec.database.clientCertificateSecretRef: Secret pg-client has a key tls.key whose value is not the private key") {
		t.Errorf("the condition says %q, want the Secret whose values do not fit together", broken.Message)
	}
	pooltest.Change(t, s, "pg-client", &corev1.Secret{}, func(secret *corev1.Secret) {
		renewed := issue(t, authority)
		secret.StringData = map[string]string{corev1.TLSCertKey: renewed.certificate, corev1.TLSPrivateKeyKey: renewed.key}
	})
	s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "True/Resolved")
	s.Await(t, "demo", v1alpha1.ConditionReady, "True/Ready")
	if diff := cmp.Diff(before, template()); diff != "" {
		t.Errorf("renewed certificates replaced the pods (-before +after):\n%s", diff)
	}

	// A changed password is part of the URL, which relays read only at their start.
	pooltest.Change(t, s, "pg-app", &corev1.Secret{}, func(secret *corev1.Secret) {
		secret.Data["uri"] = []byte(strings.Replace(string(secret.Data["uri"]), "app:", "app:x", 1))
	})
	pooltest.Eventually(t, "the pods are replaced", func() error {
		if cmp.Equal(before, template()) {
			return fmt.Errorf("the pod template is the same")
		}
		return nil
	})
}

// The operator's own checks trust the authorities of an endpoint, from the first check on and after
// a change.
func TestTheChainIsReadOverAPrivateAuthority(t *testing.T) {
	t.Parallel()
	s, _ := stand(t, pooltest.KubeletOptions{})
	behind, err := url.Parse(s.RPC)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(behind))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate are no news
	server.StartTLS()
	t.Cleanup(server.Close)
	s.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "authorities"}, Data: map[string]string{"rpc.crt": issue(t, nil).certificate}})
	if err := s.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	s.Create(t, s.Pool("demo", func(p *v1alpha1.RelayPool) {
		p.Spec.Solana.Endpoints = []v1alpha1.Endpoint{{
			Name: "private", URL: server.URL,
			CAFrom: &v1alpha1.CertificatesSource{ConfigMapRef: &v1alpha1.ConfigMapKeyReference{Name: "authorities", Key: "rpc.crt"}},
		}}
	}))
	s.Await(t, "demo", v1alpha1.ConditionSecretsResolved, "True/Resolved")
	refused := s.Await(t, "demo", v1alpha1.ConditionPoolInitialised, "Unknown/ChainUnavailable")
	if !strings.Contains(refused.Message, "endpoint private") || !strings.Contains(refused.Message, "TLS certificate not accepted") {
		t.Errorf("the condition says %q, want that the endpoint's certificate is not accepted", refused.Message)
	}
	pooltest.Change(t, s, "authorities", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) {
		c.Data["rpc.crt"] = inPEM("CERTIFICATE", server.Certificate().Raw)
	})
	s.Await(t, "demo", v1alpha1.ConditionPoolInitialised, "True/Initialised")
	s.Await(t, "demo", v1alpha1.ConditionAvailable, "True/Available")
}
