// Package cluster is the end-to-end suite's access to a Kubernetes cluster: any
// that a kubeconfig leads to.
package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/e2e/gate"
)

// Cluster is one that is tested.
type Cluster struct {
	// Client reads and writes objects, uncached; Kube has what only a typed client
	// does: logs, evictions.
	Client client.Client
	Kube   kubernetes.Interface
	// Version is the API server's, such as v1.36.3.
	Version string

	host      string
	transport http.RoundTripper
}

// Connect reads the kubeconfig and asks the API server for its version.
func Connect(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1                           // the API server's priority and fairness suffice
	config.WarningHandler = rest.NoWarnings{} // they are about our own pods' details
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	c := &Cluster{host: strings.TrimSuffix(config.Host, "/")}
	if c.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	version, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reach the cluster of %s: %w", kubeconfig, err)
	}
	c.Version = version.GitVersion
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	upgrading := rest.CopyConfig(config)
	upgrading.NextProtos = []string{"http/1.1"} // HTTP/2 cannot be upgraded
	if c.transport, err = rest.TransportFor(upgrading); err != nil {
		return nil, fmt.Errorf("make a transport: %w", err)
	}
	return c, nil
}

// Gate dials from inside a pod that serves package gate, through the API server.
func (c *Cluster) Gate(namespace, pod string) *gate.Dialer {
	return &gate.Dialer{
		Base:      fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s:%d/proxy", c.host, namespace, pod, gate.Port),
		Transport: c.transport,
	}
}

// PodSecurity is the label that enforces a pod security standard in a namespace.
const PodSecurity = "pod-security.kubernetes.io/enforce"

// MakeNamespace makes a namespace with a pod security standard, restricted or
// privileged. One that is there, or still ending, is an error: it may be
// somebody's.
func (c *Cluster) MakeNamespace(ctx context.Context, name, standard string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{PodSecurity: standard, owned: "true"},
	}}
	if err := c.Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return nil
}

// owned is on namespaces that this suite made and may delete.
const owned = "relaypool.dev/e2e"

// Own gives a namespace of an earlier run or of this one, and nil when there is
// none. One without our label is an error: nothing in it may be touched.
func (c *Cluster) Own(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for namespace %s: %w", name, err)
	case namespace.Labels[owned] == "":
		return nil, fmt.Errorf("namespace %s is there and has not the label %s: it is not this suite's to delete; remove it, or test another cluster", name, owned)
	}
	return namespace, nil
}

// DeleteNamespace deletes a namespace of an earlier run or of this one, and
// waits until it is gone. One that is not ours is an error.
func (c *Cluster) DeleteNamespace(ctx context.Context, name string) error {
	namespace, err := c.Own(ctx, name)
	if err != nil || namespace == nil {
		return err
	}
	if err := client.IgnoreNotFound(c.Client.Delete(ctx, namespace)); err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return Await(ctx, "namespace "+name+" is gone", Minutes(5), func(ctx context.Context) (string, error) {
		err := c.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "it is " + string(namespace.Status.Phase), err
	})
}
