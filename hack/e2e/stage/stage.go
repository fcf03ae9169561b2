// Package stage sets up what a fleet stands on, as pods of the cluster under
// test: a Postgres, the local chain with its pool and router, and the pod that
// clients' traffic comes from.
package stage

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/gate"
	"github.com/relaypool/relaypool/hack/e2e/release"
	"github.com/relaypool/relaypool/relay/contract"
)

//go:embed postgres.yaml
var postgresManifest []byte

//go:embed chain.yaml
var chainManifest []byte

//go:embed clients.yaml
var clientsManifest []byte

const (
	// VerifyingKeyMap is the ConfigMap with the pool's key.
	VerifyingKeyMap = "verifying-key"
	// VerifyingKeyName is the key's name in it.
	VerifyingKeyName = "verification_key.json"
	// URLKey is the key of a Secret that holds a URL.
	URLKey = "url"
	// ClientsApp is the value of the label app on the pod of clients.
	ClientsApp = "clients"

	databaseUser, databasePort = "postgres", 5432
	passwordBytes              = 16
	// mostIdle bounds the connections that clients keep: few, so that new ones
	// reach the pods that have come since.
	mostIdle = 8
)

// Options are what Up needs. All are required.
type Options struct {
	Cluster   *cluster.Cluster
	Namespace string
	Images    *release.Images
	// VerifyingKey is the pool's, as snarkjs' verification_key.json; Ring is how
	// many roots the pool's program remembers.
	VerifyingKey []byte
	Ring         int
}

// Stage is what stands.
type Stage struct {
	// HTTP reaches Services and pods by their names and addresses in the cluster,
	// from the clients' pod.
	HTTP *http.Client
	// Chain is the local chain, whose pool is not initialised yet.
	Chain *Chain

	o        Options
	password string
	clients  *gate.Dialer
	inChain  *gate.Dialer
}

// Up makes everything in a namespace that is there, and returns when it serves.
func Up(ctx context.Context, o Options) (*Stage, error) {
	if o.Cluster == nil || o.Namespace == "" || o.Images == nil || len(o.VerifyingKey) == 0 || o.Ring < 2 {
		return nil, errors.New("set the stage up: every option is required, and a ring of 2 roots or more")
	}
	secret := make([]byte, passwordBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("draw a password: %w", err)
	}
	s := &Stage{o: o, password: hex.EncodeToString(secret)}
	if err := s.makeFiles(ctx); err != nil {
		return nil, err
	}
	for _, manifest := range [][]byte{postgresManifest, chainManifest, clientsManifest} {
		if err := o.Cluster.Apply(ctx, o.Namespace, s.fill(manifest)); err != nil {
			return nil, err
		}
	}
	for _, app := range []string{"postgres", "chain", ClientsApp} {
		if _, err := o.Cluster.AwaitReady(ctx, o.Namespace, map[string]string{"app": app}, 1); err != nil {
			return nil, err
		}
	}
	s.clients = o.Cluster.Gate(o.Namespace, "clients")
	s.inChain = o.Cluster.Gate(o.Namespace, "chain")
	route := &gate.Dialer{Base: s.clients.Base, Transport: s.clients.Transport}
	s.HTTP = route.HTTP(mostIdle)
	s.HTTP.Transport.(*http.Transport).DialContext = s.dial
	var err error
	if s.Chain, err = newChain(s.RPCURL(), s.HTTP, o.Ring); err != nil {
		return nil, err
	}
	if err := s.answers(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// answers waits until the Services lead to their pods, which takes the node a
// moment longer than the pods to be ready.
func (s *Stage) answers(ctx context.Context) error {
	if err := cluster.Await(ctx, "Postgres answers", cluster.Minutes(2), func(ctx context.Context) (string, error) {
		return "", s.WithDatabase(ctx, databaseUser, func(conn *pgx.Conn) error { return conn.Ping(ctx) })
	}); err != nil {
		return err
	}
	return cluster.Await(ctx, "the chain answers", cluster.Minutes(2), func(ctx context.Context) (string, error) {
		_, err := s.Chain.RPC.GetHealth(ctx)
		return "", err
	})
}

// dial goes through the clients' pod, but for loopback, which is the chain's.
func (s *Stage) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).IsLoopback() {
		return s.inChain.DialContext(ctx, network, address)
	}
	return s.clients.DialContext(ctx, network, address)
}

// makeFiles makes the Secret and the ConfigMap that the pods mount.
func (s *Stage) makeFiles(ctx context.Context) error {
	key := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: VerifyingKeyMap, Namespace: s.o.Namespace},
		Data:       map[string]string{VerifyingKeyName: string(s.o.VerifyingKey)},
	}
	if err := s.o.Cluster.Client.Create(ctx, key); err != nil {
		return fmt.Errorf("make the ConfigMap of the verifying key: %w", err)
	}
	return s.makeSecret(ctx, "postgres", "password", s.password)
}

func (s *Stage) makeSecret(ctx context.Context, name, key, value string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.o.Namespace},
		StringData: map[string]string{key: value},
	}
	if err := s.o.Cluster.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("make Secret %s: %w", name, err)
	}
	return nil
}

// fill puts images and ring into a manifest.
func (s *Stage) fill(manifest []byte) []byte {
	for from, to := range map[string]string{
		"POSTGRES_IMAGE": s.o.Images.Postgres, "CHAIN_IMAGE": s.o.Images.Chain, "GATE_IMAGE": s.o.Images.Gate, "RING": strconv.Itoa(s.o.Ring),
	} {
		manifest = bytes.ReplaceAll(manifest, []byte(from), []byte(to))
	}
	return manifest
}

// host is a Service's name from any namespace.
func (s *Stage) host(service string) string { return service + "." + s.o.Namespace + ".svc" }

// RPCURL is the chain's.
func (s *Stage) RPCURL() string { return s.url("chain", contract.LocalChainPort) }

// RouterURL is the swap router's.
func (s *Stage) RouterURL() string { return s.url("chain", contract.LocalRouterPort) }

// NarrowPort is of another endpoint of the chain, which has faults by Narrow.
const NarrowPort = 8901

// NarrowURL is that endpoint's.
func (s *Stage) NarrowURL() string { return s.url("chain", NarrowPort) }

// Narrow has that endpoint answer every request as one whose plan is used up, or
// no longer.
func (s *Stage) Narrow(ctx context.Context, on bool) error {
	rules := "[]"
	if on {
		rules = `[{"status":429,"retryAfter":"2s"}]`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.AdminURL()+"/endpoints/narrow/faults", strings.NewReader(rules))
	if err != nil {
		return err
	}
	answer, err := s.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("set the chain's faults: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("set the chain's faults: its admin port answers %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// AdminURL is the chain's admin port, which HTTP alone reaches.
func (s *Stage) AdminURL() string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(contract.LocalAdminPort))
}

// FleetURL is that of a fleet's Service.
func (s *Stage) FleetURL(fleet string) string { return s.url(fleet, contract.APIPort) }

func (s *Stage) url(service string, port int) string {
	return "http://" + net.JoinHostPort(s.host(service), strconv.Itoa(port))
}

// MakeDatabase makes an empty database and the Secret with its URL, named alike.
func (s *Stage) MakeDatabase(ctx context.Context, name, secret string) error {
	if err := s.WithDatabase(ctx, databaseUser, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
		return err
	}); err != nil {
		return fmt.Errorf("make database %s: %w", name, err)
	}
	return s.makeSecret(ctx, secret, URLKey, s.databaseURL(name, databaseUser))
}

// databaseURL is a database's from inside the cluster. All users have one password.
func (s *Stage) databaseURL(name, user string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(user, s.password),
		Host: net.JoinHostPort(s.host("postgres"), strconv.Itoa(databasePort)), Path: "/" + name, RawQuery: "sslmode=disable",
	}).String()
}

// AnotherUser makes a database user and gives a database's URL with its name.
func (s *Stage) AnotherUser(ctx context.Context, database, user string) (url string, err error) {
	err = s.WithDatabase(ctx, database, func(conn *pgx.Conn) error {
		// The password is hexadecimal digits: it needs no quoting.
		_, err := conn.Exec(ctx, "CREATE ROLE "+pgx.Identifier{user}.Sanitize()+" SUPERUSER LOGIN PASSWORD '"+s.password+"'")
		return err
	})
	if err != nil {
		return "", fmt.Errorf("make the database user %s: %w", user, err)
	}
	return s.databaseURL(database, user), nil
}

// WithDatabase lends a connection of the suite's own to a database.
func (s *Stage) WithDatabase(ctx context.Context, name string, use func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(s.databaseURL(name, databaseUser))
	if err != nil {
		return errors.New("the database's URL is malformed") // pgx' own text may hold the password
	}
	config.DialFunc = s.dial
	// Names mean something inside the cluster alone.
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to database %s: %s", name, strings.ReplaceAll(err.Error(), s.password, "…"))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return use(conn)
}
