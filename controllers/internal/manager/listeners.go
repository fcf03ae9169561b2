package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/relaypool/relaypool/controllers/internal/settings"
)

// disabledAddress is the address that makes controller-runtime turn a server off.
const disabledAddress = "0"

// probeWait is how long a probe waits for the caches. It is less than a probe's usual timeout
// of a second.
const probeWait = 500 * time.Millisecond

func bindAddress(address string) string {
	if address == settings.None {
		return disabledAddress
	}
	return address
}

// metricsOptions returns the options of the metrics server. On a loopback address the server uses
// no TLS; on any other address it has the options of withCertificates.
func metricsOptions(l settings.Listening) metricsserver.Options {
	o := metricsserver.Options{BindAddress: bindAddress(l.MetricsListen)}
	if l.Loopback() || o.BindAddress == disabledAddress {
		return o
	}
	return withCertificates(o, l.MetricsCertDir)
}

// withCertificates changes the options so that the server uses TLS, and serves only clients
// that the API server authenticates and authorises.
func withCertificates(o metricsserver.Options, certDir string) metricsserver.Options {
	o.SecureServing = true
	o.FilterProvider = filters.WithAuthenticationAndAuthorization
	o.CertDir = certDir
	o.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		// HTTP/2 gains nothing for a scrape, and gives a stranger ways to exhaust the server.
		c.NextProtos = []string{"http/1.1"}
	}}
	return o
}

// addChecks adds the checks for probes. The process is alive while it answers, and ready once
// its caches are synchronised, so that a rollout does not end the old operator before the new
// one can take over.
func (m *Manager) addChecks() error {
	err := errors.Join(
		m.AddHealthzCheck("ping", healthz.Ping),
		m.AddReadyzCheck("caches", func(r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), probeWait)
			defer cancel()
			if !m.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the caches are not full yet")
			}
			return nil
		}))
	if err != nil {
		return fmt.Errorf("add health checks: %w", err)
	}
	return nil
}
