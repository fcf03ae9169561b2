package externalmetrics_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/controllers/internal/manager"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/controllers/internal/servingcert"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
)

const config = "../../../config"

func TestMain(m *testing.M) {
	manager.Redirect(slog.New(slog.DiscardHandler)) // the libraries' logs
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pods answer for every pod of a fleet, as relays would.
type pods struct {
	server *httptest.Server
	mutex  sync.Mutex
	answer *openapi.Backlog // nil: status 503
}

func startPods(t testing.TB) *pods {
	t.Helper()
	p := &pods{answer: &openapi.Backlog{}}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if _, port, err := net.SplitHostPort(r.Host); err != nil || port != strconv.Itoa(contract.OperationsPort) || r.URL.Path != contract.BacklogPath || p.answer == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.answer)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// set changes the answer; with nil, pods answer 503.
func (p *pods) set(answer *openapi.Backlog) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.answer = answer
}

// reader is the operator's own reader, except that it connects to the server for every
// address.
func (p *pods) reader() pool.BacklogReader {
	h := pool.NewHTTPBacklog()
	h.Client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.server.Listener.Addr().String())
	}}
	return h
}

// component returns the objects of a base or component, without its patches.
func component(t testing.TB, base string) (objects []*unstructured.Unstructured) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(base, "kustomization.yaml"))
	must(t, err)
	var k struct {
		Resources []string `json:"resources"`
	}
	must(t, yaml.Unmarshal(content, &k))
	for _, name := range k.Resources {
		path := filepath.Join(base, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			objects = append(objects, component(t, path)...)
			continue
		}
		objects = append(objects, documents(t, path)...)
	}
	return objects
}

func documents(t testing.TB, path string) (out []*unstructured.Unstructured) {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// world is a cluster with config/default, config/cluster-wide, config/external-metrics and a
// fleet's namespace. The operator runs with the permissions of its own service account.
type world struct {
	*pooltest.Stand
	kubelet  *pooltest.Kubelet
	pods     *pods
	account  *rest.Config
	operator *pooltest.Operator
	server   *apiserver.Server
}

func newWorld(t *testing.T, times servingcert.Options) *world {
	t.Helper()
	w := &world{pods: startPods(t)}
	w.server = apiservertest.Start(t, apiserver.Options{Controllers: append(pooltest.Controllers(), "horizontal-pod-autoscaler-controller")})
	admin, err := w.server.Config()
	must(t, err)
	w.Stand = pooltest.NewStand(t, admin)
	w.install(t, component(t, filepath.Join(config, "default"))...)
	w.install(t, component(t, filepath.Join(config, "cluster-wide"))...)
	w.install(t, component(t, filepath.Join(config, "external-metrics"))...)
	w.account, err = w.server.ServiceAccount(t.Context(), contract.OperatorSystemNamespace, "relaypool-operator")
	must(t, err)
	w.kubelet = pooltest.StartKubelet(t, admin, w.Namespace, pooltest.KubeletOptions{})
	w.operator = pooltest.StartOperator(t, w.account, pooltest.OperatorOptions{
		Backlog: w.pods.reader(), OperatorNamespace: contract.OperatorSystemNamespace, Certificate: times,
		External: settings.ExternalMetrics{
			Listen: "127.0.0.1:0", Service: contract.OperatorExternalMetrics, Secret: contract.OperatorExternalMetrics,
		},
	})
	var address string
	pooltest.Eventually(t, "external metrics are served", func() error {
		at, ok := w.operator.External.Address()
		if address = at; !ok {
			return errors.New("not yet")
		}
		return nil
	})
	w.routeService(t, address)
	return w
}

// install applies objects as kubectl apply --server-side does.
func (w *world) install(t testing.TB, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, u := range objects {
		if err := w.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			t.Fatalf("apply %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

// routeService makes the Service lead to an address of this machine, by the type
// ExternalName, because the test's cluster has no network for Services.
func (w *world) routeService(t testing.TB, address string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	var service corev1.Service
	must(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: contract.OperatorSystemNamespace, Name: contract.OperatorExternalMetrics}, &service))
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host, Ports: []corev1.ServicePort{{Port: int32(number)}}}
	must(t, w.Client.Update(t.Context(), &service))
	for _, u := range documents(t, filepath.Join(config, "external-metrics", "apiservice.yaml")) {
		must(t, unstructured.SetNestedField(u.Object, int64(number), "spec", "service", "port"))
		w.install(t, u)
	}
}

// ask reads a metric through the API server, as a user would.
func ask(ctx context.Context, user *rest.Config, namespace, metric, selector string) (*v1beta1.ExternalMetricValueList, int, error) {
	c, err := rest.HTTPClientFor(user)
	if err != nil {
		return nil, 0, err
	}
	defer c.CloseIdleConnections()
	path := fmt.Sprintf("%s/apis/external.metrics.k8s.io/v1beta1/namespaces/%s/%s?labelSelector=%s", user.Host, namespace, metric, url.QueryEscape(selector))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	answer, err := c.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, answer.StatusCode, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, answer.StatusCode, fmt.Errorf("%s: %s", answer.Status, body)
	}
	list := new(v1beta1.ExternalMetricValueList)
	return list, answer.StatusCode, json.Unmarshal(body, list)
}

// askAgain asks until the API server passes the request on: on a busy machine it may take the operator for
// unavailable.
func askAgain(t *testing.T, user *rest.Config, namespace, metric, selector string) (list *v1beta1.ExternalMetricValueList, code int, err error) {
	t.Helper()
	pooltest.Eventually(t, "the API server passes the request on", func() error {
		if list, code, err = ask(t.Context(), user, namespace, metric, selector); code == 0 || code == http.StatusServiceUnavailable {
			return fmt.Errorf("status %d: %w", code, err)
		}
		return nil
	})
	return list, code, err
}

func selectorOf(namespace, pool string) string { return "namespace=" + namespace + ",pool=" + pool }
