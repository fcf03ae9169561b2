package settings

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
)

// serviceAccountNamespace is where a pod finds the name of its own namespace.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Load returns the configuration for reaching the cluster. The client does not limit its
// requests, because the API server's priority and fairness does that for all clients.
func (c Cluster) Load() (*rest.Config, error) {
	if c.Kubeconfig == "" && c.Context == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		config, err := rest.InClusterConfig()
		if err == nil {
			return unlimited(config), nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("the pod's service account cannot be used: %w; mount its token, or name a file with %s", err, commandline.Setting("kubeconfig"))
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context})
	if raw, err := loader.RawConfig(); err == nil && c.Context != "" && raw.Contexts[c.Context] == nil {
		return nil, commandline.Problem("context", "the file has no context of that name: kubectl config get-contexts lists them")
	}
	config, err := loader.ClientConfig()
	switch {
	case err == nil:
		return unlimited(config), nil
	case clientcmd.IsEmptyConfig(err):
		return nil, commandline.Problem("kubeconfig", "no cluster is known: this process does not run in a pod, and neither $%s nor ~/.kube/config names a cluster; name a file that does", clientcmd.RecommendedConfigPathEnvVar)
	default:
		return nil, commandline.Problem("kubeconfig", "the file cannot be used: %w", err)
	}
}

// unlimited turns off the client's limit on requests, and sets the user agent to the operator.
func unlimited(config *rest.Config) *rest.Config {
	config.QPS = -1
	config.UserAgent = "relaypool-operator/" + contract.Version
	return config
}

// namespace returns the namespace of the pod's service account; empty outside a pod.
func namespace(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
