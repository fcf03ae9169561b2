package pool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/operatormetrics"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/relay/rpc"
)

// Wiring makes a Reconciler and all its dependencies, as the operator's process
// does. Log is required.
type Wiring struct {
	Settings Settings
	Log      *slog.Logger
	// RefsInterval is how often Secrets and ConfigMaps are read, and KeysInterval is how
	// often generated keys are read. 0 means the packages' defaults.
	RefsInterval, KeysInterval time.Duration
	// CheckWorkers is how many chains are checked at once; 0 means the default.
	CheckWorkers int
	// Backlog asks pods for their queue; nil makes a client over HTTP.
	Backlog BacklogReader
	// Poller keeps the backlogs; nil makes one from Backlog. SetupWithManager adds it to
	// the manager.
	Poller *Poller
	// Metrics registers the operator's own metrics; nil serves none, for tests that
	// run several operators in one process.
	Metrics prometheus.Registerer
	// Now is the clock of all parts; nil is the machine's clock. Timers always use the
	// machine's clock: if Now jumps forward, the next pass finds the work that became due.
	Now func() time.Time
	// Chain is the HTTP client for RPC endpoints; nil makes one.
	Chain *http.Client
}

// recorderName is the reporting controller of events.
const recorderName = "relaypool-operator"

// SetupWithManager makes all parts and registers them with the manager.
func (w Wiring) SetupWithManager(m ctrl.Manager) error {
	if w.Log == nil {
		return errors.New("wire the reconciler: option Log is not set")
	}
	o, err := w.options(m)
	if err != nil {
		return err
	}
	r, err := New(o)
	if err != nil {
		return err
	}
	return r.SetupWithManager(m)
}

func (w Wiring) options(m ctrl.Manager) (Options, error) {
	now, random := w.Now, mathrand.Float64
	if now == nil {
		now = time.Now
	}
	chain := w.Chain
	if chain == nil {
		chain = rpc.NewHTTPClient()
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return Options{}, fmt.Errorf("make discovery client: %w", err)
	}
	capabilities, err := apply.NewCapabilities(discoveryClient, now, 0)
	if err != nil {
		return Options{}, err
	}
	applier, err := apply.New(apply.Options{Client: m.GetClient(), Live: m.GetAPIReader(), Capabilities: capabilities, Now: now})
	if err != nil {
		return Options{}, err
	}
	references, err := refs.NewResolver(refs.Options{Reader: m.GetAPIReader(), Now: now, Random: random, Interval: w.RefsInterval, Policy: w.Settings.Tenants})
	if err != nil {
		return Options{}, err
	}
	observer, err := keys.NewObserver(keys.ObserverOptions{Reader: m.GetAPIReader(), Now: now, Random: random, Interval: w.KeysInterval})
	if err != nil {
		return Options{}, err
	}
	writer, err := keys.NewWriter(keys.WriterOptions{Client: m.GetClient(), Random: rand.Reader, Log: w.Log, Observer: observer})
	if err != nil {
		return Options{}, err
	}
	watcher, err := chainwatch.New(chainwatch.Options{
		HTTP: chain, Now: now, Random: random, Log: logr.FromSlogHandler(w.Log.Handler()), Workers: w.CheckWorkers,
	})
	if err != nil {
		return Options{}, err
	}
	poller := w.Poller
	if poller == nil {
		if poller, err = NewPoller(w.backlogReader(), now); err != nil {
			return Options{}, err
		}
	}
	if err := errors.Join(m.Add(watcher), m.Add(poller)); err != nil {
		return Options{}, fmt.Errorf("add watchers: %w", err)
	}
	countingApplier, err := operatormetrics.NewCountingApplier(applier)
	if err != nil {
		return Options{}, err
	}
	if err := w.registerMetrics(m, watcher, countingApplier); err != nil {
		return Options{}, err
	}
	return Options{
		Client: m.GetClient(), Live: m.GetAPIReader(), References: references, KeyObserver: observer, KeyWriter: writer,
		Applier: countingApplier, Capabilities: capabilities, Watcher: watcher, Backlogs: poller,
		Recorder: m.GetEventRecorder(recorderName), Now: now, Random: random, Settings: w.Settings,
	}, nil
}

// registerMetrics registers the operator's metrics.
func (w Wiring) registerMetrics(m ctrl.Manager, watcher *chainwatch.Watcher, countingApplier *operatormetrics.CountingApplier) error {
	if w.Metrics == nil {
		return nil
	}
	poolMetrics, err := operatormetrics.New(operatormetrics.Options{Pools: m.GetClient(), Readings: watcher})
	if err != nil {
		return err
	}
	if err := errors.Join(w.Metrics.Register(poolMetrics), w.Metrics.Register(countingApplier)); err != nil {
		return fmt.Errorf("register the operator's metrics: %w", err)
	}
	return nil
}

func (w Wiring) backlogReader() BacklogReader {
	if w.Backlog != nil {
		return w.Backlog
	}
	return NewHTTPBacklog()
}
