package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

// fieldOwner is the field manager of everything that the plugin changes.
const fieldOwner = "kubectl-relaypool"

// cluster holds the flags that select a cluster and a namespace, as those of kubectl.
type cluster struct {
	Kubeconfig string `placeholder:"FILE" group:"Cluster" help:"File with the cluster's address and credentials. Empty uses the files that $KUBECONFIG names, else ~/.kube/config."`
	Context    string `placeholder:"NAME" group:"Cluster" help:"Context of that file. Empty uses its current one."`
	Namespace  string `short:"n" placeholder:"NAMESPACE" group:"Cluster" help:"Namespace of the RelayPool. Empty uses the context's."`
}

// connection reaches one namespace of a cluster.
type connection struct {
	client.Client
	// core has what a client.Client cannot do: logs, and the API server's proxy to pods.
	core      corev1client.CoreV1Interface
	namespace string
	// podTimeout bounds one request to a pod.
	podTimeout time.Duration
}

// connect reads the kubeconfig. It makes no request.
func (e *environment) connect() (*connection, error) {
	if len(e.malformed) > 0 {
		return nil, commandline.Problems(e.malformed)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = e.cluster.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: e.cluster.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: --kubeconfig, --context: %w", commandline.ErrUsage, err)
	}
	config.UserAgent, config.QPS = "kubectl-relaypool/"+contract.Version, -1
	namespace := e.cluster.Namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("%w: --namespace: %w", commandline.ErrUsage, err)
		}
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kinds of Kubernetes: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kind RelayPool: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	return &connection{Client: client.WithFieldOwner(c, fieldOwner), core: core, namespace: namespace, podTimeout: e.podTimeout}, nil
}

// relayPool reads a RelayPool.
func (c *connection) relayPool(ctx context.Context, name string) (*v1alpha1.RelayPool, error) {
	pool := &v1alpha1.RelayPool{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, pool)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the namespace %s has no RelayPool %s: kubectl relaypool status -A lists all", c.namespace, name)
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the cluster has no kind RelayPool of %s: install the operator first", v1alpha1.SchemeGroupVersion)
	case err != nil:
		return nil, fmt.Errorf("read RelayPool %s: %w", name, err)
	}
	pool.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))
	return pool, nil
}
