package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/gate"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
)

// requirements refuses a run that does not name its cluster.
func requirements(kubeconfig, loadImage string) error {
	switch {
	case kubeconfig == "":
		return errors.New("KUBECONFIG is not set: name the file of the cluster to test; there is no default, because everything of relaypool is deleted from the cluster")
	case loadImage == "":
		return errors.New("LOAD_IMAGE is not set: give the command that makes an image archive known to the cluster's nodes, such as 'kind load image-archive'")
	}
	return nil
}

// connect makes a suite for the cluster of a kubeconfig.
func connect(ctx context.Context, t *testing.T, kubeconfig, loadImage string) *suite {
	ok(t, requirements(kubeconfig, loadImage))
	s := &suite{ctx: ctx, kubeconfig: kubeconfig, loadImage: loadImage, began: time.Now(), pages: make(map[string][]byte), victims: make(map[string]string)}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	ok(t, err)
	config.QPS = -1                           // the API server's priority and fairness suffice
	config.WarningHandler = rest.NoWarnings{} // the warnings concern details of the suite's own pods
	ok(t, v1alpha1.AddToScheme(clientgoscheme.Scheme))
	s.kube, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	ok(t, err)
	s.clientset, err = kubernetes.NewForConfig(config)
	ok(t, err)
	version, err := s.clientset.Discovery().ServerVersion()
	ok(t, err)
	t.Logf("Kubernetes %s", version.GitVersion)
	upgrading := rest.CopyConfig(config)
	upgrading.NextProtos = []string{"http/1.1"} // HTTP/2 cannot be upgraded
	transport, err := rest.TransportFor(upgrading)
	ok(t, err)
	s.proxy = podProxy{strings.TrimSuffix(config.Host, "/"), transport}
	s.verifyingKey, err = os.ReadFile("hack/circuit/verification_key.json")
	ok(t, err)
	s.simulator, err = simulator.New(s.verifyingKey, simulator.DevelopmentSeed)
	ok(t, err)
	return s
}

// podProxy reaches pods through the API server.
type podProxy struct {
	host      string
	transport http.RoundTripper
}

// gate dials from inside a pod that serves package gate.
func (p podProxy) gate(pod string) *gateDialer {
	return &gateDialer{
		Base:      fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s:%d/proxy", p.host, namespace, pod, gate.Port),
		Transport: p.transport,
	}
}

// owned is the label of namespaces that this suite made and may delete.
const owned = "relaypool.dev/e2e"

// makeNamespace makes a namespace with a pod security standard. It is an error if the
// namespace exists or is still ending, because it may be another user's.
func (s *suite) makeNamespace(name, standard string) error {
	return s.kube.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": standard, owned: "true", "metrics": "enabled"}, // whose Prometheus may scrape the operator
	}})
}

// ownNamespace returns a namespace of this run or an earlier one, and nil if there is
// none. A namespace without the suite's label ends the test: nothing in it may be touched.
func (s *suite) ownNamespace(t *testing.T, name string) *corev1.Namespace {
	t.Helper()
	found := &corev1.Namespace{}
	err := s.kube.Get(s.ctx, client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	ok(t, err)
	if found.Labels[owned] == "" {
		t.Fatalf("namespace %s exists without the label %s: this suite may not delete it; remove it, or test another cluster", name, owned)
	}
	return found
}

// deleteNamespace deletes a namespace of the suite and waits until it is gone.
func (s *suite) deleteNamespace(t *testing.T, name string) {
	t.Helper()
	if found := s.ownNamespace(t, name); found != nil {
		s.deleteObject(t, found, 5*time.Minute)
	}
}

// deleteObject deletes an object, if it is there, and waits until it is gone.
func (s *suite) deleteObject(t *testing.T, object client.Object, within time.Duration) {
	t.Helper()
	ok(t, client.IgnoreNotFound(s.kube.Delete(s.ctx, object)))
	s.await(t, fmt.Sprintf("%T %s is gone", object, object.GetName()), within, func(ctx context.Context) error {
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return errors.New("it still exists")
		}
		return client.IgnoreNotFound(err)
	})
}

// apply applies the objects of a YAML file. Those that belong into a namespace get the fleets'.
func (s *suite) apply(t *testing.T, manifests []byte) {
	t.Helper()
	for _, object := range decode(t, manifests) {
		object.SetNamespace(namespace)
		ok(t, s.kube.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("relaypool-e2e"), client.ForceOwnership))
	}
}

// applyForeign applies another project's objects, with a label by which clear deletes those of the whole
// cluster. A definition or role that is in the cluster already without it is somebody else's, and ends the
// test.
func (s *suite) applyForeign(t *testing.T, manifests []byte) {
	t.Helper()
	for _, object := range decode(t, manifests) {
		if kind := object.GetKind(); kind == "CustomResourceDefinition" || strings.HasPrefix(kind, "ClusterRole") {
			found := object.DeepCopy()
			err := s.kube.Get(s.ctx, client.ObjectKeyFromObject(object), found)
			if err == nil && found.GetLabels()[owned] == "" {
				t.Fatalf("the cluster has %s already: test another cluster, or choose other scenarios by -only", object.GetName())
			}
			ok(t, client.IgnoreNotFound(err))
		}
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[owned] = "true"
		object.SetLabels(labels)
		object.SetNamespace(namespace)
		s.await(t, "the cluster knows the kind "+object.GetKind(), time.Minute, func(ctx context.Context) error {
			return s.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("relaypool-e2e"), client.ForceOwnership)
		})
	}
}

// inModule returns where a path of a module is on this machine. tool is the folder of hack/tools whose
// go.mod has the module's version.
func (s *suite) inModule(t *testing.T, tool, module, path string) string {
	t.Helper()
	dir, err := exec.CommandContext(s.ctx, "go", "list", "-modfile=hack/tools/"+tool+"/go.mod", "-m", "-f", "{{.Dir}}", module).Output()
	ok(t, err)
	return filepath.Join(strings.TrimSpace(string(dir)), path)
}

// decode returns the objects of a YAML file.
func decode(t *testing.T, manifests []byte) (objects []*unstructured.Unstructured) {
	t.Helper()
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects
		} else if ok(t, err); len(object.Object) > 0 { // else a document with only a comment
			objects = append(objects, object)
		}
	}
}

// diagnose stores the state of the cluster: objects as YAML, without any Secret, and events.
// The watches store the logs.
func (s *suite) diagnose(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 2*time.Minute)
	defer cancel()
	to := filepath.Join(folder, "failure")
	s.log(t, "keeping objects and events in %s, logs in %s", to, folder)
	if err := os.MkdirAll(to, 0o750); err != nil {
		t.Error(err)
	}
	for name, list := range map[string]client.ObjectList{
		"relaypools": &v1alpha1.RelayPoolList{}, "pods": &corev1.PodList{}, "events": &corev1.EventList{}, "services": &corev1.ServiceList{},
		"deployments": &appsv1.DeploymentList{}, "replicasets": &appsv1.ReplicaSetList{}, "jobs": &batchv1.JobList{},
		"horizontalpodautoscalers": &autoscalingv2.HorizontalPodAutoscalerList{}, "poddisruptionbudgets": &policyv1.PodDisruptionBudgetList{},
		"networkpolicies": &networkingv1.NetworkPolicyList{},
	} {
		for _, in := range []string{namespace, operatorNamespace} {
			err := s.kube.List(ctx, list, client.InNamespace(in))
			text, encodeErr := yaml.Marshal(list)
			if err := errors.Join(err, encodeErr, os.WriteFile(filepath.Join(to, in+"-"+name+".yaml"), text, 0o600)); err != nil {
				t.Errorf("keep %s of %s: %v", name, in, err)
			}
		}
	}
}
