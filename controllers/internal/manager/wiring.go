package manager

import (
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
)

// keysIntervalFactor is the interval for reading generated keys, divided by the interval for
// reading other Secrets. Generated keys need fewer reads, because they are immutable and the
// operator itself writes their labels. With equal intervals, two of three reads
// for a RelayPool with two keys would be reads of keys.
const keysIntervalFactor = 5

// Fleets is the component that manages the fleets: the reconciler of RelayPools, the
// readers of chains and backlogs, and the server of backlogs for autoscalers.
type Fleets struct {
	Config *settings.Config
	Log    *slog.Logger
}

// SetupWithManager registers the component as configured by the operator's flags.
func (f Fleets) SetupWithManager(m ctrl.Manager) error {
	poller, err := pool.NewPoller(pool.NewHTTPBacklog(), time.Now)
	if err != nil {
		return err
	}
	if f.Config.External.Enabled() {
		served := &External{Config: f.Config, Log: f.Log, Poller: poller, Metrics: metrics.Registry}
		if err := served.SetupWithManager(m); err != nil {
			return err
		}
	}
	return pool.Wiring{
		Settings: PoolSettings(f.Config.RelayImage, f.Config.OperatorNamespace, f.Config.Tenants.Policy()), Log: f.Log,
		RefsInterval: f.Config.RefsInterval, KeysInterval: keysIntervalFactor * f.Config.RefsInterval, CheckWorkers: f.Config.CheckWorkers,
		Poller:  poller,
		Metrics: metrics.Registry, // the one that the manager serves
	}.SetupWithManager(m)
}

// NewPreviewer makes a Previewer, which shows what the operator would change in a cluster, and
// changes nothing.
func NewPreviewer(cluster *rest.Config, s pool.Settings) (*pool.Previewer, error) {
	known, err := scheme()
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	c, err := client.New(cluster, client.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return pool.NewPreviewer(pool.PreviewOptions{Client: c, Discovery: discoveryClient, Now: time.Now, Settings: s})
}

// PoolSettings returns the operator's settings on which the objects of a fleet depend.
func PoolSettings(image, namespace string, tenants tenancy.Policy) pool.Settings {
	s := pool.Settings{Image: image, OperatorNamespace: namespace, Tenants: tenants}
	if namespace != "" {
		s.OperatorLabels = map[string]string{build.LabelName: build.Manager}
	}
	return s
}
