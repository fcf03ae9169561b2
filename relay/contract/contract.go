// Package contract names what the relay and those who run it must agree on:
// ports, paths, environment variables, metrics and the timing of a shutdown.
// The relay, the builders of its pods, charts and documents all take them from
// here. It depends on the standard library alone, so that everybody can.
package contract

// Version is this release of the relay, X.Y.Z under semantic versioning, as
// the service information document and GET /health give it. What exactly was
// built is in the build identity beside it.
const Version = "0.1.0"

// ServiceName is the relay's name in the service information document.
const ServiceName = "relaypool"

// The default TCP ports.
const (
	// APIPort serves the documented interface.
	APIPort = 8080
	// OperationsPort serves /metrics, /livez and /readyz, and is not for clients.
	OperationsPort = 9090
	// ChainPort is where the local chain answers JSON-RPC, as a Solana validator does.
	ChainPort = 8899
)

// The paths of the operations port.
const (
	// PathMetrics gives Prometheus metrics.
	PathMetrics = "/metrics"
	// PathLivez answers 200 while the process answers at all.
	PathLivez = "/livez"
	// PathReadyz answers 200 while the relay takes requests, else 503.
	PathReadyz = "/readyz"
)

// The paths of the documented interface, in the form of relay/openapi.yaml and
// of chi's patterns.
const (
	PathServiceInfo        = "/"
	PathTransact           = "/transact"
	PathWithdraw           = "/withdraw"
	PathTransactSwap       = "/transact_swap"
	PathStatus             = "/status/{id}"
	PathViewingKeyRegister = "/viewing-key/register"
	PathCommitments        = "/commitments"
	PathMerkleRoot         = "/merkle-root"
	PathBacklog            = "/backlog"
	PathComplianceKey      = "/compliance-key"
	PathHealth             = "/health"
)

// APIPaths lists every path of the documented interface: the values that a
// metric's label or a log's field may have for a route.
func APIPaths() []string {
	return []string{
		PathServiceInfo,
		PathTransact,
		PathWithdraw,
		PathTransactSwap,
		PathStatus,
		PathViewingKeyRegister,
		PathCommitments,
		PathMerkleRoot,
		PathBacklog,
		PathComplianceKey,
		PathHealth,
	}
}
