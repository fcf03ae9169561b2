package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	apiservertest.Main(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is a clock that tests set forward.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time           { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(by time.Duration) { c.at.Add(int64(by)) }

// site is a namespace with replicas of the operator, and the APIService that refers
// to them.
type site struct {
	c         client.Client
	namespace string
	// apiService is version v1 of the test's own API group, so that tests do not interfere.
	apiService string
	clock      clock
	log        *bytes.Buffer
}

func newSite(t *testing.T) *site {
	t.Helper()
	c, err := client.New(apiservertest.Config(t), client.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	s := &site{c: c, namespace: apiservertest.Namespace(t), log: new(bytes.Buffer)}
	s.apiService = "v1." + s.namespace + ".example"
	s.clock.at.Store(time.Now().UnixNano())
	return s
}

// createAPIService creates the APIService, which refers to that Service.
func (s *site) createAPIService(t *testing.T, service string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": s.namespace + ".example", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
		"service": map[string]any{"namespace": s.namespace, "name": service, "port": int64(443)},
	}}}
	object.SetGroupVersionKind(kindAPIService())
	object.SetName(s.apiService)
	must(t, s.c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl")))
	t.Cleanup(func() {
		object.SetManagedFields(nil)
		must(t, client.IgnoreNotFound(s.c.Delete(context.WithoutCancel(t.Context()), object)))
	})
}

// trusted returns the authorities that clients of the APIService trust now.
func (s *site) trusted(t *testing.T) []byte {
	t.Helper()
	found := new(unstructured.Unstructured)
	found.SetGroupVersionKind(kindAPIService())
	must(t, s.c.Get(t.Context(), client.ObjectKey{Name: s.apiService}, found))
	encoded, _, _ := unstructured.NestedString(found.Object, "spec", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	must(t, err)
	return bundle
}

const secretName = "cert"

func (s *site) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := new(corev1.Secret)
	must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: secretName}, secret))
	return secret
}

// replica is a Keeper; leading is closed when it leads.
func (s *site) replica(t *testing.T) (k *Keeper, leading chan struct{}) {
	t.Helper()
	leading = make(chan struct{})
	k, err := New(Options{
		Client: s.c, Live: s.c, Namespace: s.namespace, Secret: secretName, Service: "operator", APIService: s.apiService,
		Elected: leading, Now: s.clock.now, Random: rand.Float64, Log: slog.New(slog.NewTextHandler(s.log, nil)),
	})
	must(t, err)
	return k, leading
}

// accepted reports whether a client that trusts the bundle accepts the certificate that
// the replica serves.
func (s *site) accepted(k *Keeper, bundle []byte) error {
	cert, key := k.CurrentCertKeyContent()
	pair, err := parsePair(cert, key)
	if err != nil {
		return err
	}
	return verify(pair.leaf, parseAuthorities(bundle), k.name(), s.clock.now())
}

func TestReplicasThatStartTogetherShareOneCertificate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createAPIService(t, "operator")
	var replicas []*Keeper
	s.log = nil
	for range 8 {
		k, _ := s.replica(t)
		k.Log = slog.New(slog.DiscardHandler)
		replicas = append(replicas, k)
	}
	var all sync.WaitGroup
	for _, k := range replicas {
		all.Go(func() {
			if err := k.RenewOnce(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	first, _ := replicas[0].CurrentCertKeyContent()
	for _, k := range replicas {
		if cert, _ := k.CurrentCertKeyContent(); !bytes.Equal(cert, first) {
			t.Error("two replicas serve different certificates")
		}
		select {
		case <-k.Ready():
		default:
			t.Error("a replica with a certificate is not ready")
		}
	}
	if got := s.trusted(t); len(got) > 0 {
		t.Error("a replica that does not lead wrote the APIService")
	}
}

// Replicas read the Secret, the leader changes, clients learn late which authorities to
// trust, and time passes, in any order: no client is ever refused.
func TestNoCallFailsWhileCertificatesChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		s := newSite(t)
		s.createAPIService(t, "operator")
		random := rand.New(rand.NewPCG(seed, 1))
		var replicas []*Keeper
		var leading []chan struct{}
		for range 3 {
			k, l := s.replica(t)
			replicas, leading = append(replicas, k), append(leading, l)
		}
		leader := 0
		close(leading[leader])
		for _, k := range replicas {
			must(t, k.RenewOnce(t.Context()))
		}
		// A client is behind the APIService by up to five minutes, half the time that the
		// leader waits for clients.
		client, since := s.trusted(t), s.clock.now()
		seen := map[string]bool{}
		for op := range 250 {
			switch random.IntN(12) {
			case 0:
				k, l := s.replica(t) // the leader dies, a new replica starts, and another one leads
				replicas[leader], leading[leader] = k, l
				must(t, k.RenewOnce(t.Context()))
				leader = (leader + 1) % len(replicas)
				close(leading[leader])
			default:
				s.clock.advance(time.Duration(1+random.IntN(2)) * time.Minute)
				if secret := s.secret(t); secret.Data[keyNextCert] == nil && random.IntN(3) == 0 {
					// No renewal is under way. After weeks every client is up to date.
					s.clock.advance(time.Duration(random.IntN(14*24)) * time.Hour)
					client, since = s.trusted(t), s.clock.now()
				}
				for _, i := range random.Perm(len(replicas)) {
					must(t, replicas[i].RenewOnce(t.Context()))
				}
			}
			fresh := s.trusted(t)
			cert, _ := replicas[leader].CurrentCertKeyContent()
			seen[string(cert)] = true
			for i, k := range replicas {
				if err := errors.Join(s.accepted(k, fresh), s.accepted(k, client)); err != nil {
					t.Fatalf("seed %d, operation %d: a call of replica %d fails: %v", seed, op, i, err)
				}
			}
			if s.clock.now().Sub(since) >= 5*time.Minute {
				client, since = fresh, s.clock.now()
			}
			if n := len(parseAuthorities(fresh)); n > 4 {
				t.Fatalf("seed %d: %d authorities are trusted at once", seed, n)
			}
		}
		if len(seen) < 3 {
			t.Errorf("seed %d: %d certificates were served, want three or more", seed, len(seen))
		}
	}
}

// The pair is served over real connections while it changes.
func TestHandshakesGoOnWhileCertificatesChange(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createAPIService(t, "operator")
	k, leading := s.replica(t)
	close(leading)
	must(t, k.RenewOnce(t.Context()))
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(k.CurrentCertKeyContent())
		return &pair, err
	}})
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = conn.Write([]byte("x"))
				_ = conn.Close()
			}()
		}
	}()
	call := func() (string, error) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(s.trusted(t))
		conn, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: k.name(), Time: s.clock.now}}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			return "", err
		}
		defer func() { _ = conn.Close() }()
		state := conn.(*tls.Conn).ConnectionState()
		return state.PeerCertificates[0].SerialNumber.String(), nil
	}
	served := map[string]bool{}
	for range 60 {
		s.clock.advance(6 * 24 * time.Hour)
		for range 3 {
			must(t, k.RenewOnce(t.Context()))
			serial, err := call()
			if err != nil {
				t.Fatalf("after %d certificates: %v", len(served), err)
			}
			served[serial] = true
			s.clock.advance(6 * time.Minute)
		}
	}
	if len(served) < 5 {
		t.Errorf("%d certificates were served in a year: want 5 or more", len(served))
	}
}

func TestForeignChangesOfTheSecret(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		does func(t *testing.T, s *site)
		same bool // the certificate does not change
		want string
	}{
		"nothing":             {does: func(*testing.T, *site) {}, same: true},
		"a deleted Secret":    {does: func(t *testing.T, s *site) { must(t, s.c.Delete(t.Context(), s.secret(t))) }, same: true},
		"an emptied Secret":   {does: change(func(o *corev1.Secret) { o.Data = map[string][]byte{keyCert: {}, keyKey: {}} }), same: true},
		"another private key": {does: change(func(o *corev1.Secret) { o.Data[keyKey] = otherKey() }), same: true},
		"no authorities":      {does: change(func(o *corev1.Secret) { delete(o.Data, keyAuthorities) }), same: true},
		"an extra value":      {does: change(func(o *corev1.Secret) { o.Data["note"] = []byte("mine") }), same: true},
		"a removed label":     {does: change(func(o *corev1.Secret) { o.Labels = nil }), same: true, want: "belongs to somebody else and is not changed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.createAPIService(t, "operator")
			k, leading := s.replica(t)
			close(leading)
			must(t, k.RenewOnce(t.Context()))
			before, _ := k.CurrentCertKeyContent()
			tt.does(t, s)
			touched := *s.secretIfExists(t)
			err := k.RenewOnce(t.Context())
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
			after, _ := k.CurrentCertKeyContent()
			if same := bytes.Equal(before, after); same != tt.same {
				t.Errorf("the certificate is the same: %t, want %t", same, tt.same)
			}
			if err := s.accepted(k, s.trusted(t)); err != nil {
				t.Errorf("clients refuse the certificate: %v", err)
			}
			now := s.secret(t)
			if tt.want != "" && now.ResourceVersion != touched.ResourceVersion {
				t.Error("a foreign Secret was changed")
			}
			if tt.want == "" && !bytes.Equal(now.Data[keyCert], before) {
				t.Error("the Secret does not contain the served certificate")
			}
			if name == "an extra value" && string(now.Data["note"]) != "mine" {
				t.Error("the extra value is gone")
			}
		})
	}
}

func change(edit func(*corev1.Secret)) func(*testing.T, *site) {
	return func(t *testing.T, s *site) {
		t.Helper()
		secret := s.secret(t)
		edit(secret)
		must(t, s.c.Update(t.Context(), secret))
	}
}

func (s *site) secretIfExists(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := new(corev1.Secret)
	must(t, client.IgnoreNotFound(s.c.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: secretName}, secret)))
	return secret
}

func otherKey() []byte {
	p, _, err := issue([]string{"other"}, time.Now(), time.Hour)
	if err != nil {
		panic(err)
	}
	return p.key
}

func TestForeignAPIServiceIsNotChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k, leading := s.replica(t)
	close(leading)
	if err := k.RenewOnce(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("error without an APIService is %v", err)
	}
	if err := s.accepted(k, bundle(k.served.authorities)); err != nil {
		t.Errorf("without an APIService nothing is served: %v", err)
	}
	s.createAPIService(t, "prometheus-adapter")
	err := k.RenewOnce(t.Context())
	if err == nil || !strings.Contains(err.Error(), "leads to the Service "+s.namespace+"/prometheus-adapter, expected "+s.namespace+"/operator") {
		t.Errorf("error is %v", err)
	}
	if len(s.trusted(t)) > 0 {
		t.Error("the APIService of another adapter was written")
	}
}

// The Keeper owns only its own field.
func TestKeeperOwnsOnlyTheCABundle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createAPIService(t, "operator")
	k, leading := s.replica(t)
	close(leading)
	must(t, k.RenewOnce(t.Context()))
	found := new(unstructured.Unstructured)
	found.SetGroupVersionKind(kindAPIService())
	must(t, s.c.Get(t.Context(), client.ObjectKey{Name: s.apiService}, found))
	for _, m := range found.GetManagedFields() {
		if m.Manager == fieldOwner && string(m.FieldsV1.GetRawBytes()) != `{"f:spec":{"f:caBundle":{}}}` {
			t.Errorf("the Keeper owns %s, want only the caBundle", m.FieldsV1.GetRawBytes())
		}
	}
	if err := s.accepted(k, s.trusted(t)); err != nil {
		t.Errorf("clients refuse the first certificate: %v", err)
	}
	version := found.GetResourceVersion()
	secret := s.secret(t).ResourceVersion
	for range 3 {
		must(t, k.RenewOnce(t.Context()))
	}
	must(t, s.c.Get(t.Context(), client.ObjectKey{Name: s.apiService}, found))
	if found.GetResourceVersion() != version || s.secret(t).ResourceVersion != secret {
		t.Error("RenewOnce writes although nothing changed")
	}
}

func TestKeysAreNotLogged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createAPIService(t, "operator")
	k, leading := s.replica(t)
	close(leading)
	for range 40 {
		must(t, k.RenewOnce(t.Context()))
		s.clock.advance(5 * 24 * time.Hour)
	}
	if !strings.Contains(s.log.String(), string(stepPromote)) {
		t.Fatalf("no certificate was changed: %s", s.log)
	}
	for key, value := range s.secret(t).Data {
		block, _ := pem.Decode(value)
		for _, secret := range []string{string(value), base64.StdEncoding.EncodeToString(block.Bytes)[20:60]} {
			if strings.Contains(s.log.String(), secret) {
				t.Errorf("the log has %s", key)
			}
		}
	}
}

// The time that clients have to trust the next pair starts again when the pair changes.
func TestReplacedNextPairIsNotTrustedYet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createAPIService(t, "operator")
	k, leading := s.replica(t)
	close(leading)
	must(t, k.RenewOnce(t.Context()))
	s.clock.advance(61 * 24 * time.Hour)
	for range 2 {
		must(t, k.RenewOnce(t.Context())) // makes the next pair, and observes that it is trusted
	}
	before, _ := k.CurrentCertKeyContent()
	s.clock.advance(time.Hour)
	other, authority, err := issue(k.names(), s.clock.now(), k.Validity)
	must(t, err)
	change(func(o *corev1.Secret) {
		o.Data[keyNextCert], o.Data[keyNextKey] = other.cert, other.key
		o.Data[keyAuthorities] = append(o.Data[keyAuthorities], bundle([]*x509.Certificate{authority})...)
	})(t, s)
	for range 2 {
		must(t, k.RenewOnce(t.Context()))
	}
	if after, _ := k.CurrentCertKeyContent(); !bytes.Equal(before, after) {
		t.Error("a pair is served that clients have had no time to trust")
	}
	s.clock.advance(k.TrustDelay)
	must(t, k.RenewOnce(t.Context()))
	if after, _ := k.CurrentCertKeyContent(); !bytes.Equal(other.cert, after) {
		t.Error("the next pair is not served after the trust delay")
	}
}

// The time that clients have to trust the next pair starts again when the caBundle was
// overwritten in between: clients may have read it without the next pair's authority.
func TestInterruptedTrustDelayRestarts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createAPIService(t, "operator")
	k, leading := s.replica(t)
	close(leading)
	must(t, k.RenewOnce(t.Context()))
	old := s.trusted(t)
	s.clock.advance(61 * 24 * time.Hour)
	for range 2 {
		must(t, k.RenewOnce(t.Context())) // makes the next pair, and observes that it is trusted
	}
	before, _ := k.CurrentCertKeyContent()
	s.clock.advance(k.TrustDelay - time.Second)
	must(t, k.applyBundle(t.Context(), old))
	s.clock.advance(time.Second)
	for range 2 {
		must(t, k.RenewOnce(t.Context())) // writes the caBundle, and observes that it is trusted
	}
	if after, _ := k.CurrentCertKeyContent(); !bytes.Equal(before, after) {
		t.Error("a pair is served that clients have had no time to trust")
	}
	s.clock.advance(k.TrustDelay)
	must(t, k.RenewOnce(t.Context()))
	if after, _ := k.CurrentCertKeyContent(); bytes.Equal(before, after) {
		t.Error("the next pair is not served after the trust delay")
	}
}

// A leader that does not know yet that it has lost the Lease writes after the new leader.
// Its write is refused, and its next RenewOnce starts from what the new leader wrote.
func TestLateWriteOfOldLeaderIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createAPIService(t, "operator")
	k, leading := s.replica(t)
	close(leading)
	must(t, k.RenewOnce(t.Context()))
	old := s.secret(t)
	change(func(o *corev1.Secret) { o.Annotations = map[string]string{"by": "another"} })(t, s)
	next := stateOf(old.Data)
	if err := k.write(t.Context(), old, &state{authorities: next.authorities}); !apierrors.IsConflict(err) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if err := s.accepted(k, s.trusted(t)); err != nil {
		t.Error(err)
	}
}

// An API server that is unreachable for a while is logged once, and serving continues.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiserver.Options{})
	config, err := server.Config()
	must(t, err)
	c, err := client.New(config, client.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	s := &site{c: c, namespace: metav1.NamespaceDefault, apiService: "v1.outage.example", log: new(bytes.Buffer)}
	s.clock.at.Store(time.Now().UnixNano())
	k, _ := s.replica(t)
	must(t, k.RenewOnce(t.Context()))
	must(t, server.Stop())
	for range 3 {
		err := k.RenewOnce(t.Context())
		if err == nil {
			t.Fatal("no error while the API server is down")
		}
		k.logResult(t.Context(), err)
	}
	if got := strings.Count(s.log.String(), "keeping the serving certificate failed"); got != 1 {
		t.Errorf("logged %d times, want once: %s", got, s.log)
	}
	if _, key := k.CurrentCertKeyContent(); len(key) == 0 {
		t.Error("nothing is served any more")
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	start := time.Now()
	p := policy{"operator.ns.svc", 30 * 24 * time.Hour}
	day := 24 * time.Hour
	makePair := func(at time.Time) (*pair, *x509.Certificate) {
		c, a, err := issue([]string{p.name}, at, 90*day)
		must(t, err)
		return c, a
	}
	current, currentCA := makePair(start)
	next, nextCA := makePair(start.Add(60 * day))
	foreign, _ := makePair(start)
	with := func(c, n *pair, cas ...*x509.Certificate) state { return state{current: c, next: n, authorities: cas} }
	tests := map[string]struct {
		state   state
		at      time.Duration
		trusted bool
		want    step
		wantCAs int
	}{
		"the Secret is empty":                     {state{}, 0, false, stepMake, 1},
		"the current pair is young":               {with(current, nil, currentCA), day, false, stepNone, 1},
		"the current pair expires in a month":     {with(current, nil, currentCA), 60*day + 1, false, stepStage, 2},
		"the next pair is not trusted yet":        {with(current, next, currentCA, nextCA), 61 * day, false, stepNone, 2},
		"the next pair is trusted":                {with(current, next, currentCA, nextCA), 61 * day, true, stepPromote, 2},
		"current pair expired, next untrusted":    {with(current, next, currentCA, nextCA), 91 * day, false, stepPromote, 1},
		"both pairs have expired":                 {with(current, next, currentCA, nextCA), 200 * day, false, stepMake, 1},
		"the next pair has no known authority":    {with(current, foreign, currentCA), 61 * day, true, stepStage, 2},
		"the current pair has no known authority": {with(foreign, nil, currentCA), day, false, stepMake, 2},
		"the current pair is not valid yet":       {with(current, nil, currentCA), -2 * time.Hour, false, stepMake, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := start.Add(tt.at)
			got, chosen, err := p.decide(at, tt.state, tt.trusted, func() (*pair, *x509.Certificate, error) { return issue([]string{p.name}, at, 90*day) })
			must(t, err)
			if chosen != tt.want || len(got.authorities) != tt.wantCAs {
				t.Errorf("%q with %d authorities, want %q with %d", chosen, len(got.authorities), tt.want, tt.wantCAs)
			}
			if !got.isValid(got.current, p.name, at) {
				t.Error("the current pair is not valid afterwards")
			}
		})
	}
}

func TestOptionsAreRequired(t *testing.T) {
	t.Parallel()
	_, err := New(Options{})
	if err == nil || strings.Count(err.Error(), "is not set") != 10 {
		t.Errorf("error is %v, want one for each option", err)
	}
}
