// Package manager makes the operator's process: the caches and their limits, leader
// election, the endpoints for probes and Prometheus, and the shutdown.
package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// reconcileTimeout bounds one pass. A pass makes some dozens of short calls; a longer
	// pass waits for a server that hangs, and is retried.
	reconcileTimeout = time.Minute
	// shutdownTimeout is how long passes under way may take after the process gets a signal
	// to stop. It is below a pod's usual grace period of 30 s.
	shutdownTimeout = 20 * time.Second
	// syncTimeout is how long the caches may take to fill at start.
	syncTimeout = 2 * time.Minute
)

// Options is what a Manager needs.
type Options struct {
	Config *settings.Config
	Log    *slog.Logger
}

// Component is a part that the manager runs, such as a reconciler.
type Component interface {
	SetupWithManager(ctrl.Manager) error
}

// Manager is the operator's process. A new Manager has no components: Add sets them up
// before Run.
type Manager struct {
	ctrl.Manager
	stopping *atomic.Bool // set when the context of Run ends
}

// New makes a Manager. New asks the API server for the kinds that it serves, so it returns an
// error when the cluster cannot be reached or lacks the CRD of RelayPool.
func New(o Options) (*Manager, error) {
	if o.Config == nil || o.Log == nil {
		return nil, errors.New("manager: an option is not set: Config and Log are required")
	}
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	cfg, stopping := o.Config, new(atomic.Bool)
	options := ctrl.Options{
		Scheme:                  s,
		Logger:                  logr.FromSlogHandler(quietShutdown{o.Log.Handler(), stopping}),
		Cache:                   cacheOptions(cfg.Namespaces, cfg.Resync),
		Client:                  clientOptions(),
		Metrics:                 metricsOptions(cfg.Listening),
		HealthProbeBindAddress:  bindAddress(cfg.HealthListen),
		LivenessEndpointName:    contract.LivenessPath,
		ReadinessEndpointName:   contract.ReadinessPath,
		GracefulShutdownTimeout: new(shutdownTimeout),
		Controller: config.Controller{
			MaxConcurrentReconciles: cfg.ConcurrentReconciles,
			ReconciliationTimeout:   reconcileTimeout,
			CacheSyncTimeout:        syncTimeout,
		},
	}
	electLeader(&options, cfg)
	inner, err := ctrl.NewManager(cfg.Rest, options)
	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("the cluster lacks the CustomResourceDefinition of RelayPool: install it with kubectl apply --server-side -f config/crd, or with the chart")
	case err != nil:
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	m := &Manager{inner, stopping}
	if err := m.addChecks(); err != nil {
		return nil, err
	}
	metrics.RegisterRESTClientMetrics(metrics.MetricRequestLatency, metrics.MetricRequestRetry)
	return m, nil
}

// Add sets components up, in the given order.
func (m *Manager) Add(components ...Component) error {
	for _, c := range components {
		if err := c.SetupWithManager(m.Manager); err != nil {
			return fmt.Errorf("set up %T: %w", c, err)
		}
	}
	return nil
}

// Run runs until ctx ends or the Lease is lost. The process must end as soon as Run
// returns, because another operator may lead from then on.
func (m *Manager) Run(ctx context.Context) error {
	// The manager must stop only after stopping is set, so its context does not end with ctx.
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		m.stopping.Store(true)
		stop()
	})()
	if err := m.Start(runCtx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

// scheme returns a scheme with Kubernetes' own kinds and RelayPool.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("make the scheme: %w", err)
	}
	return s, nil
}
