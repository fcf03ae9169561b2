package release

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	helmrelease "helm.sh/helm/v4/pkg/release"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// timeout limits how long Helm waits for the API server to serve the definition, and for
// hooks to finish.
const timeout = 2 * time.Minute

// Client runs Helm's commands for one release on one cluster.
type Client struct {
	// Kubeconfig is the path of the cluster's kubeconfig.
	Kubeconfig string
	// CacheDir is the folder of Helm's cache of the cluster's API.
	CacheDir string
	// Name and Namespace of the release. A missing namespace is created.
	Name, Namespace string
	// InNamespace creates only objects in the namespace: neither the namespace itself nor the
	// definition.
	InNamespace bool
	// HelmVersion is the version that Helm reports in place of its own.
	HelmVersion string
	// Log receives Helm's messages.
	Log *slog.Logger
}

func (c *Client) configuration() (*action.Configuration, error) {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Namespace, flags.CacheDir = &c.Kubeconfig, &c.Namespace, &c.CacheDir
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS, config.Burst = 500, 1000
		return config
	}
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(c.Log.Handler()))
	if err := configuration.Init(flags, c.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("make a Helm client: %w", err)
	}
	return configuration, nil
}

// Install runs helm install --create-namespace. It tries again if Helm does not find the
// RelayPool kind: the API server lists a kind only a moment after its definition is
// established, and Helm reads that list once. The failed attempt has stored nothing.
func (c *Client) Install(ch *chart.Chart, values map[string]any) (*release.Release, error) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(time.Second) {
		got, err := c.install(ch, values)
		if err == nil || !strings.Contains(err.Error(), "ensure CRDs are installed first") || time.Now().After(deadline) {
			return got, err
		}
	}
}

func (c *Client) install(ch *chart.Chart, values map[string]any) (*release.Release, error) {
	configuration, err := c.configuration()
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace, install.CreateNamespace = c.Name, c.Namespace, !c.InNamespace
	install.WaitStrategy, install.Timeout, install.SkipCRDs = kube.HookOnlyStrategy, timeout, c.InNamespace
	return toRelease(install.Run(ch, values))
}

// Upgrade runs helm upgrade.
func (c *Client) Upgrade(ch *chart.Chart, values map[string]any) (*release.Release, error) {
	configuration, err := c.configuration()
	if err != nil {
		return nil, err
	}
	if c.HelmVersion != "" {
		configuration.Capabilities = c.capabilities()
	}
	upgrade := action.NewUpgrade(configuration)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = c.Namespace, kube.HookOnlyStrategy, timeout
	return toRelease(upgrade.Run(c.Name, ch, values))
}

func (c *Client) capabilities() *common.Capabilities {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.HelmVersion.Version = c.HelmVersion
	capabilities.KubeVersion = common.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	return capabilities
}

// Uninstall runs helm uninstall, and returns Helm's message about the objects that it kept.
func (c *Client) Uninstall() (string, error) {
	configuration, err := c.configuration()
	if err != nil {
		return "", err
	}
	uninstall := action.NewUninstall(configuration)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, timeout
	response, err := uninstall.Run(c.Name)
	if err != nil {
		return "", err //nolint:wrapcheck // Helm's own words are what the user reads
	}
	return response.Info, nil
}

func toRelease(got helmrelease.Releaser, err error) (*release.Release, error) {
	if err != nil {
		return nil, err //nolint:wrapcheck // Helm's own words are what the user reads
	}
	rel, ok := got.(*release.Release)
	if !ok {
		return nil, fmt.Errorf("helm returned a release of type %T", got)
	}
	return rel, nil
}
