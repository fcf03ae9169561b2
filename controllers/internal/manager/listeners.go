package manager

import (
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
