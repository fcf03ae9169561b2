package manifests

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/relay/contract"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	apiservertest.Main(m)
}

// startWithManifests is a server on which config/default and these components were applied, as
// kubectl apply --server-side does it, with unknown fields refused.
func startWithManifests(t *testing.T, components ...string) (*apiserver.Server, client.Client) {
	t.Helper()
	server := apiservertest.Start(t, apiserver.Options{})
	rest, err := server.Config()
	must(t, err)
	c, err := client.New(rest, client.Options{})
	must(t, err)
	objects, _ := resources(t, filepath.Join(config, "default"))
	for _, name := range components {
		more, _ := resources(t, filepath.Join(config, name))
		objects = append(objects, more...)
	}
	for _, u := range objects {
		raw, err := json.Marshal(u)
		must(t, err)
		out := u.DeepCopy()
		if err := c.Patch(t.Context(), out, client.RawPatch("application/apply-patch+yaml", raw), client.FieldOwner("kubectl"),
			client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Fatalf("apply %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	return server, c
}

func TestARestrictedNamespaceAcceptsTheOperatorsPod(t *testing.T) {
	t.Parallel()
	server, _ := startWithManifests(t)
	rest, err := server.Config()
	must(t, err)
	c, err := client.New(rest, client.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	var d appsv1.Deployment
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: contract.OperatorSystemNamespace, Name: "relaypool-operator"}, &d))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "operator", Labels: d.Spec.Template.Labels},
		Spec:       d.Spec.Template.Spec,
	}
	must(t, c.Create(t.Context(), pod, client.DryRunAll))
	// The namespace enforces the restricted standard.
	pod.Spec.Containers[0].SecurityContext = nil
	if err := c.Create(t.Context(), pod, client.DryRunAll); err == nil {
		t.Error("the namespace accepts a pod that is not restricted")
	}
}
