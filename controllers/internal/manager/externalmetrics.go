package manager

import (
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/relaypool/relaypool/controllers/internal/externalmetrics"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/servingcert"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/relay/contract"
)

// External is the component that serves the backlog of fleets as external metrics,
// with a certificate that it renews itself.
type External struct {
	Config *settings.Config
	Log    *slog.Logger
	// Poller reads the backlogs. External makes the Poller watch RelayPools, but does not add
	// it to the manager.
	Poller *pool.Poller
	// Metrics is where External registers the component's own metrics. If it is nil, they are not
	// served.
	Metrics prometheus.Registerer
	// Certificate lets tests change the times of certificates. External sets all other options.
	Certificate servingcert.Options

	server *externalmetrics.Server
}

// SetupWithManager implements Component.
func (e *External) SetupWithManager(m ctrl.Manager) error {
	if e.Config == nil || e.Log == nil || e.Poller == nil {
		return errors.New("serve external metrics: Config, Log and Poller are required")
	}
	flags := e.Config.External
	e.Poller.Watch(m.GetClient())
	o := e.Certificate
	o.Client, o.Live, o.Elected, o.Log = m.GetClient(), m.GetAPIReader(), m.Elected(), e.Log
	o.Namespace, o.Service, o.Secret, o.APIService = e.Config.OperatorNamespace, flags.Service, flags.Secret, contract.ExternalMetricsAPIService
	o.Now, o.Random = time.Now, mathrand.Float64
	certificate, err := servingcert.New(o)
	if err != nil {
		return err
	}
	provider, err := externalmetrics.NewProvider(externalmetrics.ProviderOptions{
		Pools: m.GetClient(), Readings: e.Poller, Namespaces: e.Config.Namespaces, Now: time.Now,
	})
	if err != nil {
		return err
	}
	e.server, err = externalmetrics.NewServer(externalmetrics.ServerOptions{
		Listen: flags.Listen, Config: m.GetConfig(), Provider: provider, Certificate: certificate, Ready: certificate.Ready(), Log: e.Log,
	})
	if err != nil {
		return err
	}
	if err := errors.Join(m.Add(certificate), m.Add(e.server), m.AddReadyzCheck("external-metrics", e.ready)); err != nil {
		return fmt.Errorf("add the server of external metrics: %w", err)
	}
	if e.Metrics != nil {
		if err := e.Metrics.Register(externalmetrics.NewCollector(provider, certificate)); err != nil {
			return fmt.Errorf("register the metrics of external metrics: %w", err)
		}
	}
	return nil
}

// ready returns an error until external metrics are served and all watched fleets have been polled.
// So a rollout does not replace an operator that serves external metrics with one that cannot
// serve them yet.
func (e *External) ready(*http.Request) error {
	select {
	case <-e.server.Serving():
	default:
		return errors.New("external metrics are not served yet: the log names what is missing")
	}
	if !e.Poller.AllRead() {
		return errors.New("the fleets' backlogs have not been read yet")
	}
	return nil
}

// Address returns where external metrics are served. serving is false until they are served.
func (e *External) Address() (address string, serving bool) {
	select {
	case <-e.server.Serving():
		return e.server.Address(), true
	default:
		return "", false
	}
}
