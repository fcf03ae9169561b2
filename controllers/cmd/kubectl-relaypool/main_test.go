package main

import (
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { apiservertest.Main(m) }

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at is when conditions change in these tests, and commands run three minutes later.
var at = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// stand is a namespace of a real API server with a RelayPool, and a gateway in front of the server.
// There is no kubelet, so the gateway answers requests for pods' pages and logs.
type stand struct {
	t          *testing.T
	client     client.Client
	namespace  string
	kubeconfig string
	// pages are the answers of pods, by POD PATH, and logs by POD CONTAINER. Without pages, the
	// API server gets the requests.
	pages, logs map[string]string
}

func newStand(t *testing.T) *stand {
	t.Helper()
	scheme := runtime.NewScheme()
	noError(t, clientgoscheme.AddToScheme(scheme))
	noError(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(apiservertest.Config(t), client.Options{Scheme: scheme, FieldValidation: "Strict"})
	noError(t, err)
	s := &stand{t: t, client: c, namespace: apiservertest.Namespace(t), pages: map[string]string{}, logs: map[string]string{}}
	s.kubeconfig = s.gateway(apiservertest.Config(t))
	return s
}

// hang is the page of a pod that does not answer.
const hang = "hang"

var podRequest = regexp.MustCompile(`/pods/([^/:]+)(?::9090/proxy(/\w+)|/log)$`)

// gateway serves the API server with the rights of a configuration, and returns a kubeconfig for it.
func (s *stand) gateway(config *rest.Config) string {
	s.t.Helper()
	target, err := url.Parse(config.Host)
	noError(s.t, err)
	transport, err := rest.TransportFor(config)
	noError(s.t, err)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		match := podRequest.FindStringSubmatch(r.URL.Path)
		if match == nil || s.pages == nil {
			proxy.ServeHTTP(w, r)
			return
		}
		answers, name := s.pages, match[1]+" "+match[2]
		if match[2] == "" {
			answers, name = s.logs, match[1]+" "+r.URL.Query().Get("container")
			if r.URL.Query().Get("previous") == "true" {
				name += " previous"
			}
		}
		answer, ok := answers[name]
		if answer == hang {
			<-r.Context().Done()
			return
		}
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(answer))
	}))
	s.t.Cleanup(server.Close)
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	noError(s.t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: s.namespace}},
		CurrentContext: "x",
	}, path))
	return path
}

// relayPool makes the RelayPool of testdata with a status.
func (s *stand) relayPool(change func(*v1alpha1.RelayPool)) *v1alpha1.RelayPool {
	s.t.Helper()
	content, err := os.ReadFile("testdata/pool.yaml")
	noError(s.t, err)
	pool := &v1alpha1.RelayPool{}
	noError(s.t, yaml.UnmarshalStrict(content, pool))
	pool.Namespace = s.namespace
	pool.Status = statusOfDemo()
	if change != nil {
		change(pool)
	}
	status := pool.Status
	noError(s.t, s.client.Create(s.t.Context(), pool))
	s.setStatus(pool, &status)
	return pool
}

func (s *stand) setStatus(pool *v1alpha1.RelayPool, status *v1alpha1.RelayPoolStatus) {
	s.t.Helper()
	noError(s.t, s.client.Get(s.t.Context(), client.ObjectKeyFromObject(pool), pool))
	pool.Status = *status
	pool.Status.ObservedGeneration = pool.Generation
	noError(s.t, s.client.Status().Update(s.t.Context(), pool))
}

const (
	payerA = "9wfXhaoTA134sVJB2jJjFCia6x4YY7fmbNhh4qB9K52c"
	payerB = "uXF3LL1qVZjPtq5FfwMB8qxZg9CdzjspTkMQUbiVeKB"
)

func statusOfDemo() v1alpha1.RelayPoolStatus {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at)}
	}
	return v1alpha1.RelayPoolStatus{
		Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUnderfunded, "a fee payer lacks SOL"),
			condition(v1alpha1.ConditionPoolInitialised, metav1.ConditionTrue, v1alpha1.ReasonInitialised, "the pool accepts transactions"),
		},
		DesiredReplicas: 2, Replicas: 2, ReadyReplicas: 1, Backlog: new(int64(20)),
		FeePayers: []v1alpha1.FeePayerStatus{
			{Address: payerA, SecretName: "demo-payer-0-0", State: v1alpha1.PayerActive, BalanceLamports: new(int64(1_230_000_000)), RunwayHours: new(int64(40))},
			{Address: payerB, SignerName: "vault", State: v1alpha1.PayerActive, BalanceLamports: new(int64(20_000_000))},
		},
	}
}

// pod makes a pod of the fleet.
func (s *stand) pod(name string, ready bool, env ...corev1.EnvVar) {
	s.t.Helper()
	s.podOf(build.Labels("demo"), build.RelayContainer, name, ready, env...)
}

// podOf makes a pod with one container that was restarted once.
func (s *stand) podOf(labels map[string]string, container, name string, ready bool, env ...corev1.EnvVar) {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: container, Image: "example/relay:1", Env: env,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	noError(s.t, s.client.Create(s.t.Context(), pod))
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: status}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: container, Image: "example/relay:1", ImageID: "sha256:1", RestartCount: 1}},
	}
	noError(s.t, s.client.Status().Update(s.t.Context(), pod))
}

// command runs one command line to its end.
func (s *stand) command(in string, args ...string) (code int, out, stderr string) {
	s.t.Helper()
	var o, e bytes.Buffer
	env := &environment{Context: s.t.Context(), in: strings.NewReader(in), out: &o, err: &e, now: func() time.Time { return at.Add(3 * time.Minute) }, pace: 20 * time.Millisecond, podTimeout: 5 * time.Second}
	code = run(env, append(args, "--kubeconfig="+s.kubeconfig))
	return code, o.String(), e.String()
}

// succeed runs a command that must not fail and returns its output.
func (s *stand) succeed(args ...string) string {
	s.t.Helper()
	code, out, stderr := s.command("", args...)
	if code != 0 {
		s.t.Fatalf("%s: exit code %d, want 0: %s", args[0], code, stderr)
	}
	return out
}

// golden compares an output with a file, with the namespace's name replaced.
func (s *stand) golden(name, got string) {
	s.t.Helper()
	got = strings.ReplaceAll(got, s.namespace, "NAMESPACE")
	path := "testdata/" + name + ".golden.txt"
	if *update {
		noError(s.t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	noError(s.t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		s.t.Errorf("run go test ./controllers/cmd/kubectl-relaypool -update if that is right (-want +got):\n%s", diff)
	}
}

// local runs a command that needs no cluster.
func local(t *testing.T, args ...string) (code int, out, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(&environment{Context: t.Context(), in: strings.NewReader(""), out: &o, err: &e, now: time.Now}, args)
	return code, o.String(), e.String()
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if _, out, _ := local(t, "version"); !strings.HasPrefix(out, "kubectl-relaypool "+contract.Version+" (") {
		t.Errorf("received %q, want the name and version %s", out, contract.Version)
	}
}

func TestUsageErrorsExitWith2(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no command":                          {nil, "expected one of"},
		"a kubeconfig that is not there":      {[]string{"status", "--kubeconfig=/nowhere"}, "--kubeconfig, --context"},
		"a name together with all namespaces": {[]string{"status", "demo", "-A"}, "leave out the name"},
		"an unknown output":                   {[]string{"status", "-o", "xml"}, "--output"},
		"a timeout that is no duration":       {[]string{"rotate", "demo", "--timeout=soon"}, "a duration"},
		"a shell that is not known":           {[]string{"completion", "csh"}, "must be one of"},
		"pause without a name":                {[]string{"pause"}, "<name>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := local(t, tt.args...)
			if code != commandline.ExitUsage || out != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d, empty, %q", code, out, stderr, commandline.ExitUsage, tt.want)
			}
		})
	}
}
