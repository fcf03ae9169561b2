package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// exposedManifest has Vault and Traefik.
//
//go:embed exposed.yaml
var exposedManifest string

const (
	// exposedHost and gatewayHost are the host names of the Ingress and of the Gateway.
	exposedHost, gatewayHost = "relay.e2e.example", "gateway.e2e.example"
	// exposedClass is the IngressClass in exposedManifest.
	exposedClass = "relaypool-e2e"
	// minExposed is the number of spends that have to complete through the ingress controller.
	minExposed = 20
)

// exposed makes a fleet as in a production cluster: a private authority issued the certificates of
// the database, of Vault and of the host; the fleet's only payer is a key in Vault, where pods log in
// as their service account; and clients with API keys reach it by TLS through an ingress controller,
// from this machine, which is outside of the cluster's network; then through a Gateway.
func (s *suite) exposed(t *testing.T) {
	f := s.newFleet("exposed")
	vault := s.startVaultAndIngress(t)
	payer := vault.makeKey(t, f.name)
	s.makeDatabase(t, f.name)
	s.makeCloudNativePGSecrets(t, f.name)
	key := rand.Text()
	s.makeSecret(t, f.name+"-api-keys", "keys", key+"\n")
	s.makeCertificate(t, f.name+"-certificate", exposedHost)
	s.makeCertificate(t, "gateway-certificate", gatewayHost)
	pool := s.exposedPool(f.name, payer)
	ok(t, s.kube.Create(s.ctx, pool))
	f.fund(t, moreFunds)
	f.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.awaitCondition(t, v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonExposed)
	s.log(t, "Vault has the payer's key, the database's certificate is of a private authority, and the fleet is exposed")

	s.checkTLS(t, f.name)
	address := s.ingressAddress(t)
	stranger := s.outside(t, address, "")
	s.await(t, "the ingress controller leads to the fleet, which refuses clients without a key", time.Minute, func(ctx context.Context) error {
		return expectStatus(ctx, stranger, http.StatusUnauthorized)
	})
	clients := s.newTrafficFrom(t, s.outside(t, address, key), []string{"https://" + exposedHost}, calmRate, 0, s.seed+3)
	defer clients.abandon()
	s.awaitCompleted(t, clients, minExposed)
	clients.finish(5 * time.Minute)
	s.log(t, "through TLS from outside of the cluster: %s", clients)
	records := clients.Journal().Records()

	f.change(t, func(spec *v1alpha1.RelayPoolSpec) {
		spec.API.Ingress = nil
		spec.API.Gateway = &v1alpha1.Gateway{ParentRefs: []v1alpha1.GatewayReference{{Name: "public"}}, Hostnames: []string{gatewayHost}}
	})
	f.awaitCondition(t, v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonExposed)
	clients = s.newTrafficFrom(t, s.outside(t, address, key), []string{"https://" + gatewayHost}, calmRate, 0, s.seed+8)
	defer clients.abandon()
	s.awaitCompleted(t, clients, minExposed)
	clients.finish(5 * time.Minute)
	s.log(t, "by the Gateway instead of the Ingress: %s", clients)
	f.accountFor(t, append(records, clients.Journal().Records()...))
	ok(t, s.kube.Delete(s.ctx, pool))
}

// exposedPool is the RelayPool of the scenario.
func (s *suite) exposedPool(name string, payer solana.PublicKey) *v1alpha1.RelayPool {
	pool := s.relayPool(name, maxReplicas, submissionsPerReplica)
	authority := &v1alpha1.CertificatesSource{ConfigMapRef: &v1alpha1.ConfigMapKeyReference{Name: authorityMap, Key: authorityKey}}
	spec := &pool.Spec
	spec.Replicas, spec.Autoscaling = new(int32(2)), nil
	spec.Database.URLSecretRef = v1alpha1.SecretKeyReference{Name: name + "-app", Key: "uri"}
	spec.Database.CAFrom = &v1alpha1.CertificatesSource{SecretRef: &v1alpha1.SecretKeyReference{Name: name + "-ca", Key: "ca.crt"}}
	spec.FeePayers.Generate = nil
	spec.FeePayers.Signers = []v1alpha1.Signer{{Name: "vault", Address: payer.String(), VaultTransit: &v1alpha1.VaultTransit{
		URL: vaultURL, Key: name, KeyVersion: 1, CAFrom: authority, Kubernetes: &v1alpha1.VaultKubernetesLogin{Role: name},
	}}}
	spec.API.ClientIPHeader = "X-Real-Ip" // Traefik's
	spec.API.KeysSecretRef = &v1alpha1.SecretKeyReference{Name: name + "-api-keys", Key: "keys"}
	spec.API.Ingress = &v1alpha1.Ingress{ClassName: exposedClass, Hosts: []string{exposedHost}, TLS: &v1alpha1.IngressTLS{SecretName: name + "-certificate"}}
	spec.NetworkPolicy.APIFrom = []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "traefik"}}}}
	spec.NetworkPolicy.Signers = []v1alpha1.Destination{{CIDR: "0.0.0.0/0", Port: vaultPort}}
	return pool
}

// makeCloudNativePGSecrets makes the Secrets of a database as CloudNativePG makes them, with the keys that a
// RelayPool uses: the URL of the application's user, and the authority. The URL says sslmode=disable, so
// that caFrom alone can make connections use TLS.
func (s *suite) makeCloudNativePGSecrets(t *testing.T, database string) {
	t.Helper()
	s.makeSecret(t, database+"-app", "uri", strings.Replace(s.stage.databaseURL(database, postgresUser), "postgres:", "postgresql:", 1))
	s.makeSecret(t, database+"-ca", "ca.crt", string(s.stage.authority.PEM))
}

// startVaultAndIngress applies exposedManifest and returns a client of Vault.
func (s *suite) startVaultAndIngress(t *testing.T) *vault {
	t.Helper()
	v := &vault{suite: s, token: rand.Text(), http: &http.Client{Transport: s.stage.overTLS(), Timeout: 30 * time.Second}}
	s.makeCertificate(t, "vault-certificate", "vault."+namespace+".svc")
	for _, kind := range []string{"gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants", "backendtlspolicies"} {
		crd, err := os.ReadFile(s.inModule(t, "traefik", "sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml"))
		ok(t, err)
		s.applyForeign(t, crd)
	}
	s.apply(t, []byte(strings.NewReplacer("VAULT_IMAGE", s.images.vault, "TRAEFIK_IMAGE", s.images.traefik, "VAULT_TOKEN", v.token,
		"NODE_ADDRESS", s.nodeAddress(t), "NAMESPACE", namespace, "GATEWAY_HOST", gatewayHost).Replace(exposedManifest)))
	for _, app := range []string{"vault", "traefik"} {
		s.awaitReady(t, namespace, map[string]string{"app": app}, 1)
	}
	// Services reach their pods a moment after the pods are ready.
	s.await(t, "the Service of Vault leads to it", 2*time.Minute, s.dialFrom(clientsApp, net.JoinHostPort("vault."+namespace+".svc", strconv.Itoa(vaultPort))))
	v.logInPods(t)
	return v
}

// checkTLS checks that every connection to a fleet's database uses TLS. Without caFrom none would.
func (s *suite) checkTLS(t *testing.T, database string) {
	t.Helper()
	var all, plain int
	ok(t, s.stage.withDatabase(s.ctx, database, func(conn *pgx.Conn) error {
		return conn.QueryRow(s.ctx, `SELECT count(*), count(*) FILTER (WHERE NOT ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
			WHERE datname = $1 AND pid <> pg_backend_pid()`, database).Scan(&all, &plain)
	}))
	if all == 0 || plain > 0 {
		t.Fatalf("the database %s has %d connections, %d without TLS: want some, and none without", database, all, plain)
	}
	s.log(t, "all %d connections to the database use TLS", all)
}

// makeCertificate makes a Secret with a certificate of the stage's authority.
func (s *suite) makeCertificate(t *testing.T, secret, host string) {
	t.Helper()
	certificate, key := s.stage.authority.Issue(t, host, host)
	ok(t, s.kube.Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: namespace}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}))
}

// overTLS is a transport from the clients' pod that trusts the stage's authority.
func (s *stage) overTLS() *http.Transport {
	transport := s.HTTP.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.trust()
	return transport
}

// trust is the configuration of clients that trust the stage's authority and no other.
func (s *stage) trust() *tls.Config {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(s.authority.PEM)
	return &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
}

// nodeAddress is the address of a node in the network outside of the cluster's.
func (s *suite) nodeAddress(t *testing.T) string {
	t.Helper()
	nodes := &corev1.NodeList{}
	ok(t, s.kube.List(s.ctx, nodes))
	for i := range nodes.Items {
		for _, address := range nodes.Items[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				return address.Address
			}
		}
	}
	t.Fatal("no node has an internal IP address")
	return ""
}

// ingressAddress is where the ingress controller serves clients outside of the cluster.
func (s *suite) ingressAddress(t *testing.T) string {
	t.Helper()
	service := &corev1.Service{}
	ok(t, s.kube.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: "traefik"}, service))
	return net.JoinHostPort(s.nodeAddress(t), strconv.Itoa(int(service.Spec.Ports[0].NodePort)))
}

// outside returns a client on this machine that finds every host at an address, as by DNS, and
// presents an API key unless that is empty.
func (s *suite) outside(t *testing.T, address, key string) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: s.stage.trust(), ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return &http.Client{Transport: withAPIKey{transport, key}}
}

// withAPIKey presents an API key with each request, unless the key is empty.
type withAPIKey struct {
	http.RoundTripper
	key string
}

// RoundTrip implements http.RoundTripper.
func (k withAPIKey) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	return k.RoundTripper.RoundTrip(r)
}

// expectStatus asks the exposed fleet for its backlog, and returns an error unless the answer has the status.
func expectStatus(ctx context.Context, from *http.Client, status int) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+exposedHost+"/backlog", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := from.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != status {
		err = fmt.Errorf("GET /backlog answers %s, want %d", answer.Status, status)
	}
	return errors.Join(err, answer.Body.Close())
}
