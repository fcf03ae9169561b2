// Package apiservertest gives tests a real API server: either one for all tests of a
// package, with the project's resources installed and a namespace for each test, or a
// test's own server, which the test may stop.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { apiservertest.Main(m) }
//
// With -short there is no server, and the tests that need a server are skipped.
// Without -short, these tests fail if the server does not start.
package apiservertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/hack/apiserver"
)

// startTimeout is long enough for the first build on two slow cores.
const startTimeout = 30 * time.Minute

// shared is the server of the package's tests. The first test that needs it starts it.
var shared struct {
	once   sync.Once
	opts   apiserver.Options
	server *apiserver.Server
	err    error
}

// Main runs the package's tests with an API server that has the project's
// CRDs, and exits with their code.
func Main(m *testing.M) { os.Exit(Run(m, apiserver.Options{})) }

// Run is like Main, but takes options and returns the exit code. Options.Log is standard
// error by default.
func Run(m *testing.M, opts apiserver.Options) int {
	if opts.Log == nil {
		opts.Log = os.Stderr
	}
	shared.opts = opts
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "apiservertest: %v\n", err)
			code = max(code, 1)
		}
	}
	return code
}

// Start starts a server for this test alone. The test may stop it.
func Start(t testing.TB, opts apiserver.Options) *apiserver.Server {
	t.Helper()
	skipShort(t)
	if opts.Log == nil {
		opts.Log = t.Output()
	}
	server, err := apiserver.Start(t.Context(), opts)
	if err != nil {
		t.Fatalf("apiservertest: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("apiservertest: %v", err)
		}
	})
	return server
}

func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("the test needs an API server, which -short does not start")
	}
}

// Server returns the package's server, with which tests make users and install CRDs.
func Server(t testing.TB) *apiserver.Server {
	t.Helper()
	skipShort(t)
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		shared.server, shared.err = apiserver.Start(ctx, shared.opts)
	})
	if shared.err != nil {
		t.Fatalf("apiservertest: %v", shared.err)
	}
	return shared.server
}

// Config returns the administrator's configuration for the package's server.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	config, err := Server(t).Config()
	if err != nil {
		t.Fatalf("apiservertest: %v", err)
	}
	return config
}

// Namespace makes a namespace for this test on the package's server and returns its
// name. Like a hardened cluster, the namespace accepts only pods that meet the restricted
// Pod Security Standard. It exists until the server ends, because no controller deletes
// the contents of namespaces here.
func Namespace(t testing.TB) string {
	t.Helper()
	return NamespaceOn(t, Config(t))
}

// NamespaceOn is like Namespace, on the server of a configuration.
func NamespaceOn(t testing.TB, config *rest.Config) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("apiservertest: make a client: %v", err)
	}
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("apiservertest: make the test's namespace: %v", err)
	}
	return made.Name
}

// ForeignCRD returns a CRD for another project's namespaced resource, such as PodMonitor,
// which accepts any spec and status. Tests can check which objects are applied, but not
// whether the project's real CRD would accept them.
func ForeignCRD(kind schema.GroupVersionKind, plural string) *apiextensionsv1.CustomResourceDefinition {
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group}}
	crd.Spec.Group, crd.Spec.Scope = kind.Group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: plural}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: kind.Version, Served: true, Storage: true,
		Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open},
		}},
	}}
	return crd
}

// HTTPRouteCRD returns the CRD of HTTPRoutes from the module of the Gateway API.
func HTTPRouteCRD(t testing.TB) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return HTTPRouteCRDOf(t, "v1.6.0")
}

// HTTPRouteCRDOf is like HTTPRouteCRD, of a version of the Gateway API.
func HTTPRouteCRDOf(t testing.TB, version string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, module := new(apiextensionsv1.CustomResourceDefinition), struct{ Dir string }{}
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/gateway-api@"+version).Output()
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	text, readErr := os.ReadFile(filepath.Join(module.Dir, "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml"))
	if err := errors.Join(err, readErr, yaml.UnmarshalStrict(text, crd)); err != nil {
		t.Fatalf("apiservertest: read the CRD of HTTPRoutes: %v", err)
	}
	return crd
}
