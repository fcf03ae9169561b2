package manager

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/controllers/internal/settings"
)

// Fleets is the component that keeps the fleets: the reconciler of RelayPools,
// and what reads chains and backlogs beside it.
type Fleets struct {
	Config *settings.Config
	Log    *slog.Logger
}

// SetupWithManager puts the parts together. Those that read beside the
// reconciler run on the leader alone, as it does.
func (f Fleets) SetupWithManager(m ctrl.Manager) error {
	watcher, err := chainwatch.New(chainwatch.Options{
		HTTP: chainwatch.NewHTTPClient(), Now: time.Now, Random: mathrand.Float64,
		Log: logr.FromSlogHandler(f.Log.Handler()), Workers: f.Config.CheckWorkers,
	})
	if err != nil {
		return err
	}
	poller, err := pool.NewPoller(pool.HTTPBacklog{Client: podClient()}, time.Now)
	if err != nil {
		return err
	}
	o, err := f.parts(m)
	if err != nil {
		return err
	}
	o.Watcher, o.Backlogs = watcher, poller
	reconciler, err := pool.New(o)
	if err != nil {
		return err
	}
	return errors.Join(reconciler.SetupWithManager(m), m.Add(watcher), m.Add(poller))
}

// parts are the reconciler's collaborators that talk to the API server.
func (f Fleets) parts(m ctrl.Manager) (pool.Options, error) {
	live := m.GetAPIReader()
	client, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return pool.Options{}, fmt.Errorf("make discovery client: %w", err)
	}
	capabilities, err := apply.NewCapabilities(client, time.Now, apply.DefaultCapabilityInterval)
	if err != nil {
		return pool.Options{}, err
	}
	applier, err := apply.New(apply.Options{Client: m.GetClient(), Live: live, Capabilities: capabilities, Now: time.Now})
	if err != nil {
		return pool.Options{}, err
	}
	references, err := refs.NewResolver(refs.Options{Reader: live, Now: time.Now, Random: mathrand.Float64, Interval: f.Config.RefsInterval})
	if err != nil {
		return pool.Options{}, err
	}
	observer, err := keys.NewObserver(keys.ObserverOptions{Reader: live, Now: time.Now, Random: mathrand.Float64, Interval: f.Config.RefsInterval})
	if err != nil {
		return pool.Options{}, err
	}
	writer, err := keys.NewWriter(keys.WriterOptions{Client: m.GetClient(), Random: rand.Reader, Log: f.Log, Observer: observer})
	if err != nil {
		return pool.Options{}, err
	}
	return pool.Options{
		Client: m.GetClient(), Live: live, References: references, KeyObserver: observer, KeyWriter: writer,
		Applier: applier, Capabilities: capabilities, Recorder: m.GetEventRecorder(build.Manager),
		Now: time.Now, Random: mathrand.Float64, Settings: PoolSettings(f.Config.RelayImage, f.Config.OperatorNamespace),
	}, nil
}

// PoolSettings are what the objects of fleets take from the operator.
func PoolSettings(image, namespace string) pool.Settings {
	s := pool.Settings{Image: image, OperatorNamespace: namespace}
	if namespace != "" {
		s.OperatorLabels = map[string]string{build.LabelName: build.Manager}
	}
	return s
}

// podClient asks pods for their backlog. It keeps no connection, for pods go.
func podClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
