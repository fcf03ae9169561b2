package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

const testTimeout = 2 * time.Minute

func TestMain(m *testing.M) { apiservertest.Main(m) }

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testConfig returns a valid configuration for the cluster, without leader election.
func testConfig(cluster *rest.Config, namespaces ...string) *settings.Config {
	return &settings.Config{
		Run: settings.Run{
			Namespaces: namespaces,
			Work:       settings.Work{ConcurrentReconciles: 1, Resync: time.Hour},
			Listening:  settings.Listening{MetricsListen: settings.None, HealthListen: settings.None},
			Leading:    settings.Leading{Name: "lease", Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second},
		},
		Rest: cluster,
	}
}

// startManager runs a Manager until the test ends.
func startManager(t *testing.T, cfg *settings.Config) *Manager {
	t.Helper()
	m, err := New(Options{Config: cfg, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	noError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		noError(t, <-ended)
	})
	select {
	case <-m.Elected():
	case <-time.After(testTimeout):
		t.Fatal("the manager did not start to lead")
	}
	return m
}

// admin is a client without a cache.
func admin(t *testing.T) client.Client {
	t.Helper()
	s, err := scheme()
	noError(t, err)
	c, err := client.New(apiservertest.Config(t), client.Options{Scheme: s})
	noError(t, err)
	return c
}

// requests counts the requests to the API server, by verb and resource.
type requests struct {
	mu   sync.Mutex
	seen []string
}

func (r *requests) on(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			r.mu.Lock()
			r.seen = append(r.seen, q.Method+" "+q.URL.RequestURI())
			r.mu.Unlock()
			return inner.RoundTrip(q)
		})
	})
	return c
}

func (r *requests) matching(resource string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, line := range r.seen {
		if strings.Contains(line, "/"+resource) {
			out = append(out, line)
		}
	}
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func objectMeta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

func relayPool(namespace, name string) *v1alpha1.RelayPool {
	return &v1alpha1.RelayPool{
		ObjectMeta: objectMeta(namespace, name, nil),
		Spec: v1alpha1.RelayPoolSpec{
			Pool:        v1alpha1.Pool{Profile: v1alpha1.Profile{Name: "development"}, VerifyingKeyConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "vk", Key: "vk.json"}},
			Solana:      v1alpha1.Solana{Cluster: "devnet", Endpoints: []v1alpha1.Endpoint{{Name: "a", URL: "https://rpc.example"}}},
			Database:    v1alpha1.Database{URLSecretRef: v1alpha1.SecretKeyReference{Name: "db", Key: "url"}},
			FeePayers:   v1alpha1.FeePayers{Generate: &v1alpha1.GeneratedKeys{Count: 1}},
			ViewingKeys: v1alpha1.ViewingKeys{CompliancePublicKey: strings.Repeat("0", 63) + "1"},
		},
	}
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(namespace, name, labels)}
}

func names(list []corev1.ConfigMap) (names []string) {
	for i := range list {
		names = append(names, list[i].Name)
	}
	slices.Sort(names)
	return names
}

func TestOnlyObjectsOfPoolsAreCached(t *testing.T) {
	t.Parallel()
	namespace, c := apiservertest.Namespace(t), admin(t)
	noError(t, c.Create(t.Context(), configMap(namespace, "labelled", build.Labels("demo"))))
	noError(t, c.Create(t.Context(), configMap(namespace, "other", map[string]string{"app": "other"})))
	noError(t, c.Create(t.Context(), relayPool(namespace, "demo")))
	pod := &corev1.Pod{ObjectMeta: objectMeta(namespace, "demo-1", build.Labels("demo")), Spec: corev1.PodSpec{
		NodeName:        "node",
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "relay", Image: "relay", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}}
	noError(t, c.Create(t.Context(), pod))

	m := startManager(t, testConfig(apiservertest.Config(t), namespace))
	var maps corev1.ConfigMapList
	noError(t, m.GetClient().List(t.Context(), &maps))
	if diff := cmp.Diff([]string{"labelled"}, names(maps.Items)); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	if len(maps.Items[0].ManagedFields) == 0 {
		t.Error("an owned object has lost its managed fields, which show drift")
	}
	var pools v1alpha1.RelayPoolList
	noError(t, m.GetClient().List(t.Context(), &pools))
	if len(pools.Items) != 1 || len(pools.Items[0].ManagedFields) > 0 {
		t.Errorf("received %d RelayPools, want one without managed fields", len(pools.Items))
	}
	var got corev1.Pod
	noError(t, m.GetClient().Get(t.Context(), client.ObjectKeyFromObject(pod), &got))
	if diff := cmp.Diff(corev1.PodSpec{NodeName: "node"}, got.Spec); diff != "" || len(got.ManagedFields) > 0 {
		t.Errorf("the pod has %d managed fields and the specification (-want +got):\n%s", len(got.ManagedFields), diff)
	}
}

func TestSecretsAreReadOneByOne(t *testing.T) {
	t.Parallel()
	namespace, c := apiservertest.Namespace(t), admin(t)
	noError(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: objectMeta(namespace, "db", build.Labels("demo"))}))
	var recorded requests
	m := startManager(t, testConfig(recorded.on(apiservertest.Config(t))))
	for range 2 {
		noError(t, m.GetClient().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "db"}, &corev1.Secret{}))
	}
	want := "GET /api/v1/namespaces/" + namespace + "/secrets/db"
	if diff := cmp.Diff([]string{want, want}, recorded.matching("secrets")); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The service account has a Role in two namespaces and nothing else.
func TestOtherNamespacesAreNotRead(t *testing.T) {
	t.Parallel()
	one, two, other, c := apiservertest.Namespace(t), apiservertest.Namespace(t), apiservertest.Namespace(t), admin(t)
	for _, namespace := range []string{one, two, other} {
		noError(t, c.Create(t.Context(), relayPool(namespace, "demo")))
		noError(t, c.Create(t.Context(), configMap(namespace, "in-"+namespace, build.Labels("demo"))))
	}
	user := "operator-of-" + one
	for _, namespace := range []string{one, two} {
		noError(t, c.Create(t.Context(), &rbacv1.Role{ObjectMeta: objectMeta(namespace, "operator", nil), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", v1alpha1.Group}, Resources: []string{"configmaps", "relaypools"}, Verbs: []string{"get", "list", "watch"}},
		}}))
		noError(t, c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: objectMeta(namespace, "operator", nil),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}))
	}
	limited, err := apiservertest.Server(t).User(user)
	noError(t, err)
	m := startManager(t, testConfig(limited, one, two))
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var pools v1alpha1.RelayPoolList
	noError(t, m.GetClient().List(ctx, &pools))
	var maps corev1.ConfigMapList
	noError(t, m.GetClient().List(ctx, &maps))
	want := []string{"in-" + one, "in-" + two}
	slices.Sort(want)
	if diff := cmp.Diff(want, names(maps.Items)); diff != "" || len(pools.Items) != 2 {
		t.Errorf("%d RelayPools, and ConfigMaps (-want +got):\n%s", len(pools.Items), diff)
	}
	if err := m.GetClient().List(ctx, &pools, client.InNamespace(other)); err == nil {
		t.Errorf("a namespace that was not named has %d RelayPools, want an error", len(pools.Items))
	}
}

func TestAClusterWithoutTheResource(t *testing.T) {
	t.Parallel()
	server, err := apiserver.Start(t.Context(), apiserver.Options{Log: t.Output(), NoCRDs: true})
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop()) })
	cluster, err := server.Config()
	noError(t, err)
	_, err = New(Options{Config: testConfig(cluster), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "install it with kubectl apply --server-side -f config/crd") {
		t.Errorf("error is %v, want one that says how to install it", err)
	}
}

func TestOptionsAreRequired(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"no configuration": {Log: slog.New(slog.DiscardHandler)}, "no log": {Config: testConfig(&rest.Config{})}} {
		if _, err := New(o); err == nil {
			t.Errorf("New accepts options with %s", name)
		}
	}
}

func TestMetricsRequirePermission(t *testing.T) {
	t.Parallel()
	c, server := admin(t), apiservertest.Server(t)
	const permitted = "prometheus-permitted"
	noError(t, c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: objectMeta("", permitted, nil), Rules: []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}}))
	namespace := apiservertest.Namespace(t)
	noError(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: objectMeta("", permitted, nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: permitted},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: permitted}},
	}))
	token := map[string]string{"nobody": "", "a stranger": "stranger"}
	for _, name := range []string{permitted, "prometheus-not-permitted"} {
		noError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: objectMeta(namespace, name, nil)}))
		account, err := server.ServiceAccount(t.Context(), namespace, name)
		noError(t, err)
		token[name] = account.BearerToken
	}
	cluster := apiservertest.Config(t)
	httpClient, err := rest.HTTPClientFor(cluster)
	noError(t, err)
	plain := metricsOptions(settings.Listening{MetricsListen: "127.0.0.1:0"})
	// The filter also answers with 500 for a token that the API server does not know.
	tests := map[string]struct {
		options metricsserver.Options
		want    map[string]int
	}{
		"over TLS":      {withCertificates(metricsserver.Options{BindAddress: "127.0.0.1:0"}, ""), map[string]int{permitted: 200, "prometheus-not-permitted": 403, "a stranger": 500, "nobody": 401}},
		"on a loopback": {plain, map[string]int{permitted: 200, "prometheus-not-permitted": 200, "a stranger": 200, "nobody": 200}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := metricsserver.NewServer(tt.options, cluster, httpClient)
			noError(t, err)
			url := serve(t, server, tt.options.SecureServing)
			got := map[string]int{}
			for who := range tt.want {
				got[who] = ask(t, url, token[who])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// serve runs the server until the test ends, and returns the metrics' URL.
func serve(t *testing.T, server metricsserver.Server, secure bool) string {
	t.Helper()
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logr.Discard()))
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		noError(t, <-ended)
	})
	bound, ok := server.(interface{ GetBindAddr() string })
	if !ok {
		t.Fatalf("%T has no method GetBindAddr", server)
	}
	for deadline := time.Now().Add(testTimeout); bound.GetBindAddr() == ""; {
		if time.Now().After(deadline) {
			t.Fatal("metrics are not served")
		}
		time.Sleep(time.Millisecond)
	}
	if secure {
		return "https://" + bound.GetBindAddr() + "/metrics"
	}
	return "http://" + bound.GetBindAddr() + "/metrics"
}

// ask returns the status of the answer, and fails when its content is not metrics.
func ask(t *testing.T, url, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	noError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the pair is self-signed, made by the server under test
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: testTimeout}).Do(request)
	noError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	noError(t, err)
	if answer.StatusCode == http.StatusOK && !strings.Contains(string(body), "# TYPE ") {
		t.Error(fmt.Errorf("%s has no metrics: %.200s", url, body))
	}
	return answer.StatusCode
}
