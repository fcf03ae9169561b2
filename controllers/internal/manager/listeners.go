package manager

import (
	"crypto/tls"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/relaypool/relaypool/controllers/internal/settings"
)

// disabledAddress is the address that makes controller-runtime turn a server off.
const disabledAddress = "0"

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
