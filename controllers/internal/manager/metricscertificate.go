package manager

import (
	"crypto/tls"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// withCertificates changes the options so that the server uses TLS, and serves only clients
// that the API server authenticates and authorises.
func withCertificates(o metricsserver.Options, certDir string) metricsserver.Options {
	o.SecureServing = true
	o.FilterProvider = filters.WithAuthenticationAndAuthorization
	o.CertDir = certDir // the server reads tls.crt and tls.key again when they change
	o.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		// HTTP/2 gains nothing for a scrape, and gives a stranger ways to exhaust the server.
		c.NextProtos = []string{"http/1.1"}
	}}
	return o
}
