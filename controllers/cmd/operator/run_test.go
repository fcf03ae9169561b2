package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// testTimeout allows for a busy machine.
	testTimeout = 2 * time.Minute
	// lease is short, so that tests see it expire.
	lease = 5 * time.Second
	// stopWithin is far longer than a process takes to stop.
	stopWithin = time.Minute
)

// operator is a process that runs the operator.
type operator struct {
	*process.Process
	metrics, health string // addresses
}

// start runs an operator outside the cluster, with a kubeconfig.
func start(t *testing.T, cluster *rest.Config, namespace string, more ...string) *operator {
	t.Helper()
	program, err := os.Executable()
	noError(t, err)
	o := &operator{metrics: freeAddress(t), health: freeAddress(t)}
	t.Setenv(underTest, "1")
	o.Process, err = process.Start("operator", filepath.Join(t.TempDir(), "log"), program, append([]string{
		"run", "--kubeconfig=" + kubeconfig(t, cluster), "--relay-image=registry.example/relay:1", "--operator-namespace=" + namespace, "--namespaces=" + namespace,
		"--metrics-listen=" + o.metrics, "--health-listen=" + o.health,
		"--lease-duration=" + lease.String(), "--lease-renew-deadline=3s", "--lease-retry-period=500ms",
	}, more...)...)
	noError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(o.Log())
			t.Logf("the operator's log:\n%s", log)
		}
		if err := o.Kill(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// freeAddress returns an address on which nothing listened a moment ago.
func freeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := freeport.Find(t.Context(), 1)
	noError(t, err)
	return addresses[0]
}

func kubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	noError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path))
	return path
}

// eventually polls until ask returns nil, and fails the test when the operator ends.
func eventually(t *testing.T, what string, o *operator, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		if o != nil && o.Ended() != nil {
			t.Fatalf("%s: %v", what, o.Ended())
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// get returns a page's content. A status other than 200 is an error.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
}

func (o *operator) ready(ctx context.Context) error {
	for _, path := range []string{contract.LivenessPath, contract.ReadinessPath} {
		if _, err := get(ctx, "http://"+o.health+path); err != nil {
			return err
		}
	}
	return nil
}

// leads returns nil while the operator's metrics say that it is the leader.
func (o *operator) leads(ctx context.Context) error {
	page, err := get(ctx, "http://"+o.metrics+contract.MetricsPath)
	if err == nil && !strings.Contains(page, `leader_election_master_status{name="`+contract.OperatorLease+`"} 1`) {
		err = errors.New("the operator does not lead")
	}
	return err
}

func client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(apiservertest.Config(t))
	noError(t, err)
	return c
}

func getLease(t *testing.T, c *kubernetes.Clientset, namespace string) *coordinationv1.Lease {
	t.Helper()
	l, err := c.CoordinationV1().Leases(namespace).Get(t.Context(), contract.OperatorLease, metav1.GetOptions{})
	noError(t, err)
	return l
}

func TestOneLeaderAtATime(t *testing.T) {
	namespace, c := apiservertest.Namespace(t), client(t)
	first := start(t, apiservertest.Config(t), namespace)
	eventually(t, "the first leads", first, first.leads)
	second := start(t, apiservertest.Config(t), namespace)
	eventually(t, "the second is ready without leading", second, second.ready)
	holder := *getLease(t, c, namespace).Spec.HolderIdentity
	if second.leads(t.Context()) == nil {
		t.Fatal("both lead")
	}

	noError(t, first.Kill())
	eventually(t, "the second takes over from the killed leader", second, second.leads)
	if after := *getLease(t, c, namespace).Spec.HolderIdentity; after == holder {
		t.Error("the Lease still names the killed leader")
	}

	third := start(t, apiservertest.Config(t), namespace)
	eventually(t, "the third is ready", third, third.ready)
	holder = *getLease(t, c, namespace).Spec.HolderIdentity
	noError(t, second.Stop(stopWithin))
	if !second.Succeeded() {
		t.Error("a leader that is stopped does not exit with 0")
	}
	if after := getLease(t, c, namespace).Spec.HolderIdentity; after != nil && *after == holder {
		t.Error("a leader that is stopped does not release its Lease")
	}
	eventually(t, "the third takes over from the stopped leader", third, third.leads)
	noError(t, third.Stop(stopWithin))
	for _, o := range []*operator{second, third} {
		log, err := os.ReadFile(o.Log())
		noError(t, err)
		if strings.Contains(string(log), `"level":"ERROR"`) {
			t.Errorf("an operator that is stopped logs an error:\n%s", log)
		}
	}
}

// A leader that can no longer renew its Lease must exit before another leads.
func TestLeaderThatLosesItsLeaseExits(t *testing.T) {
	namespace, c := apiservertest.Namespace(t), client(t)
	o := start(t, apiservertest.Config(t), namespace)
	eventually(t, "the operator leads", o, o.leads)
	eventually(t, "another process takes the Lease", o, func(ctx context.Context) error {
		l := getLease(t, c, namespace)
		l.Spec.HolderIdentity, l.Spec.RenewTime = new("somebody-else"), new(metav1.NewMicroTime(time.Now().Add(time.Hour)))
		_, err := c.CoordinationV1().Leases(namespace).Update(ctx, l, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return err
		}
		noError(t, err)
		return nil
	})
	select {
	case <-o.Exited():
	case <-time.After(testTimeout):
		t.Fatal("the operator runs on without its Lease")
	}
	if o.Succeeded() {
		t.Error("the operator exits with 0, as after a stop, want a failure")
	}
	log, err := os.ReadFile(o.Log())
	noError(t, err)
	if !strings.Contains(string(log), "leader election lost") {
		t.Error("the log lacks \"leader election lost\"")
	}
}

func TestAFollowerStopsAtOnce(t *testing.T) {
	namespace := apiservertest.Namespace(t)
	first := start(t, apiservertest.Config(t), namespace)
	eventually(t, "the first leads", first, first.leads)
	second := start(t, apiservertest.Config(t), namespace)
	eventually(t, "the second is ready", second, second.ready)
	noError(t, second.Stop(stopWithin))
	if !second.Succeeded() {
		t.Error("a follower that is stopped does not exit with 0")
	}
	if err := first.leads(t.Context()); err != nil {
		t.Errorf("the first, after the second stopped: %v", err)
	}
}

// Each replica, leader or not, serves with the certificate that one of them has made.
func TestEveryReplicaServesExternalMetrics(t *testing.T) {
	namespace, c := apiservertest.Namespace(t), client(t)
	addresses := []string{freeAddress(t), freeAddress(t)}
	for _, address := range addresses {
		o := start(t, apiservertest.Config(t), namespace, "--external-metrics-listen="+address, "--external-metrics-secret=pair")
		eventually(t, "it is ready", o, o.ready)
		page, err := get(t.Context(), "http://"+o.metrics+contract.MetricsPath)
		if err != nil || !strings.Contains(page, contract.MetricOperatorCertificateExpiry.Name+" ") {
			t.Errorf("the metrics lack %s: %v", contract.MetricOperatorCertificateExpiry.Name, err)
		}
	}
	secret, err := c.CoreV1().Secrets(namespace).Get(t.Context(), "pair", metav1.GetOptions{})
	noError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	for _, address := range addresses {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: contract.OperatorExternalMetrics + "." + namespace + ".svc", MinVersion: tls.VersionTLS12}}
		t.Cleanup(transport.CloseIdleConnections)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/apis/external.metrics.k8s.io/v1beta1", http.NoBody)
		noError(t, err)
		answer, err := (&http.Client{Transport: transport, Timeout: testTimeout}).Do(request)
		noError(t, err)
		noError(t, answer.Body.Close())
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("without credentials the status is %s, want 401", answer.Status)
		}
	}
}

func TestUnreachableCluster(t *testing.T) {
	unreachable := &rest.Config{Host: "https://" + freeAddress(t)}
	code, _, stderr := command(t, "", "run", "--kubeconfig="+kubeconfig(t, unreachable), "--relay-image=relay", "--cluster-wide", "--operator-namespace=here", "--metrics-listen=none", "--health-listen=none")
	if code != commandline.ExitFailed || !strings.Contains(stderr, "connection refused") {
		t.Errorf("exit code %d and stderr %q, want a failure and \"connection refused\"", code, stderr)
	}
}
