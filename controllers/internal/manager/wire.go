package manager

import (
	"log/slog"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/settings"
)

// rarer is how many times as long generated keys are taken for known: they are
// immutable, and the operator itself writes their labels. They are two reads in
// three of a RelayPool with two keys.
const rarer = 5

// Fleets is the component that keeps the fleets: the reconciler of RelayPools,
// and what reads chains and backlogs beside it.
type Fleets struct {
	Config *settings.Config
	Log    *slog.Logger
}

// SetupWithManager registers the component as the operator's flags have it.
func (f Fleets) SetupWithManager(m ctrl.Manager) error {
	return pool.Wiring{
		Settings: PoolSettings(f.Config.RelayImage, f.Config.OperatorNamespace), Log: f.Log,
		RefsInterval: f.Config.RefsInterval, KeysInterval: rarer * f.Config.RefsInterval, CheckWorkers: f.Config.CheckWorkers,
		Metrics: metrics.Registry, // the one that the manager serves
	}.SetupWithManager(m)
}

// PoolSettings are what the objects of fleets take from the operator.
func PoolSettings(image, namespace string) pool.Settings {
	s := pool.Settings{Image: image, OperatorNamespace: namespace}
	if namespace != "" {
		s.OperatorLabels = map[string]string{build.LabelName: build.Manager}
	}
	return s
}
