package e2e

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/rpc"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/hack/testca"
	"github.com/relaypool/relaypool/relay/contract"
)

// stageManifest has a Postgres, the local chain with its router, and the pod that
// clients' traffic comes from.
//
//go:embed testpods.yaml
var stageManifest string

const (
	// verifyingKeyMap is the ConfigMap with the pool's verifying key under verifyingKeyName.
	verifyingKeyMap, verifyingKeyName = "verifying-key", "verification_key.json"
	// authorityMap is the ConfigMap with the certificate of the stage's authority under authorityKey.
	authorityMap, authorityKey = "authority", "ca.crt"
	// urlKey is the key of the URL in a Secret.
	urlKey = "url"
	// clientsApp is the value of the label app on the pod of clients.
	clientsApp = "clients"
	// rootHistory is the length of the root history; a long one permits a long queue.
	rootHistory = 4000
	// narrowPort is the port of another endpoint of the chain, whose faults narrow sets.
	narrowPort = 8901

	postgresUser, postgresPort = "postgres", 5432
)

// stage has the services that a fleet needs, as pods of the cluster under test.
type stage struct {
	*chain
	// HTTP reaches Services and pods by their names and addresses in the cluster, from the
	// clients' pod. It keeps few connections, so that new connections reach the pods that were
	// added since.
	HTTP *http.Client

	password string
	// authority issued the certificates of Postgres, and of what exposed adds.
	authority        *testca.Authority
	clients, inChain *gateDialer
}

// setUp makes everything in an existing namespace, and returns when it serves.
func (s *suite) setUp(t *testing.T) {
	t.Helper()
	s.stage = &stage{password: rand.Text(), authority: testca.New(t), clients: s.proxy.gate(clientsApp), inChain: s.proxy.gate("chain")}
	ok(t, s.kube.Create(s.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: verifyingKeyMap, Namespace: namespace},
		Data:       map[string]string{verifyingKeyName: string(s.verifyingKey)},
	}))
	ok(t, s.kube.Create(s.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: authorityMap, Namespace: namespace},
		Data:       map[string]string{authorityKey: string(s.stage.authority.PEM)},
	}))
	s.makeSecret(t, "postgres", "password", s.stage.password)
	s.makeCertificate(t, "postgres-certificate", "postgres."+namespace+".svc")
	s.apply(t, []byte(fillStage(s.images)))
	for _, app := range []string{"postgres", "chain", clientsApp} {
		s.awaitReady(t, namespace, map[string]string{"app": app}, 1)
	}
	s.stage.HTTP = (&gateDialer{Base: s.stage.clients.Base, Transport: s.stage.clients.Transport}).HTTP(8)
	s.stage.HTTP.Transport.(*http.Transport).DialContext = s.stage.dial
	s.stage.chain = newChain(t, s.stage.rpcURL(), s.stage.HTTP)
	// Services reach their pods a moment after the pods are ready.
	s.await(t, "Postgres answers", 2*time.Minute, func(ctx context.Context) error {
		return s.stage.withDatabase(ctx, postgresUser, func(conn *pgx.Conn) error { return conn.Ping(ctx) })
	})
	s.await(t, "the chain answers", 2*time.Minute, func(ctx context.Context) error {
		_, err := s.stage.RPC.GetHealth(ctx)
		return err
	})
	var err error
	s.vault, err = s.stage.balance(s.ctx, s.stage.Market.VaultSOL, rpc.CommitmentConfirmed)
	ok(t, err)
}

// fillStage writes images and the length of the root history into the manifest.
func fillStage(i images) string {
	return strings.NewReplacer("POSTGRES_IMAGE", i.postgres, "CHAIN_IMAGE", i.chain, "GATE_IMAGE", i.gate, "ROOT_HISTORY", strconv.Itoa(rootHistory)).Replace(stageManifest)
}

func (s *suite) makeSecret(t *testing.T, name, key, value string) {
	t.Helper()
	ok(t, s.kube.Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		StringData: map[string]string{key: value},
	}))
}

// dial connects from the clients' pod, and from the chain's pod for loopback addresses.
func (s *stage) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).IsLoopback() {
		return s.inChain.DialContext(ctx, network, address)
	}
	return s.clients.DialContext(ctx, network, address)
}

// serviceURL is the URL of a Service, valid in any namespace.
func serviceURL(service string, port int) string {
	return "http://" + net.JoinHostPort(service+"."+namespace+".svc", strconv.Itoa(port))
}

func (*stage) rpcURL() string               { return serviceURL("chain", contract.LocalChainPort) }
func (*stage) routerURL() string            { return serviceURL("chain", contract.LocalRouterPort) }
func (*stage) narrowURL() string            { return serviceURL("chain", narrowPort) }
func (*stage) fleetURL(fleet string) string { return serviceURL(fleet, contract.APIPort) }

// adminURL is the URL of the chain's admin port, which only HTTP reaches.
func (*stage) adminURL() string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(contract.LocalAdminPort))
}

// narrow makes the endpoint of narrowURL answer every request as if its request limit were
// used up, if on is true, and answer normally again if on is false.
func (s *stage) narrow(ctx context.Context, on bool) error {
	rules := "[]"
	if on {
		rules = `[{"status":429,"retryAfter":"2s"}]`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.adminURL()+"/endpoints/narrow/faults", strings.NewReader(rules))
	if err != nil {
		return err
	}
	answer, err := s.HTTP.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("set the chain's faults: its admin port answers %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// makeDatabase makes a fleet's empty database and the Secret with its URL.
func (s *suite) makeDatabase(t *testing.T, fleet string) {
	t.Helper()
	ok(t, s.stage.withDatabase(s.ctx, postgresUser, func(conn *pgx.Conn) error {
		_, err := conn.Exec(s.ctx, "CREATE DATABASE "+pgx.Identifier{fleet}.Sanitize())
		return err
	}))
	s.makeSecret(t, fleet+"-database", urlKey, s.stage.databaseURL(fleet, postgresUser))
}

// databaseURL is the URL of a database from inside the cluster. All users have one password.
func (s *stage) databaseURL(name, user string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(user, s.password),
		Host: net.JoinHostPort("postgres."+namespace+".svc", strconv.Itoa(postgresPort)), Path: "/" + name, RawQuery: "sslmode=disable",
	}).String()
}

// makeUser makes a database user and returns a database's URL with its name.
func (s *suite) makeUser(t *testing.T, database, user string) (url string) {
	t.Helper()
	ok(t, s.stage.withDatabase(s.ctx, database, func(conn *pgx.Conn) error {
		// The password is base32 text: it needs no quoting.
		_, err := conn.Exec(s.ctx, "CREATE ROLE "+pgx.Identifier{user}.Sanitize()+" SUPERUSER LOGIN PASSWORD '"+s.stage.password+"'")
		return err
	}))
	return s.stage.databaseURL(database, user)
}

// withDatabase calls use with a connection of the suite's own to a database.
func (s *stage) withDatabase(ctx context.Context, name string, use func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(s.databaseURL(name, postgresUser))
	if err != nil {
		return errors.New("the database's URL is malformed") // pgx' own text may contain the password
	}
	config.DialFunc = s.dial
	// Names resolve only inside the cluster.
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to database %s: %s", name, strings.ReplaceAll(err.Error(), s.password, "…"))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return use(conn)
}
