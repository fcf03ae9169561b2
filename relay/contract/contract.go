// Package contract has the constants that operator and relay share: ports, paths,
// environment, metric names and drain timings. Each is defined only here. The package
// imports only the standard library.
package contract

// Default ports.
const (
	// APIPort serves clients.
	APIPort = 8080
	// OperationsPort serves metrics and probes.
	OperationsPort = 9090
	// LocalChainPort is the port of the local chain.
	LocalChainPort = 8899
	// LocalAdminPort is the port for the administration of the local chain. LocalRouterPort is
	// the port of the swap router for the local chain's market.
	LocalAdminPort  = 8898
	LocalRouterPort = 8897
)

// Paths of the operations port.
const (
	MetricsPath   = "/metrics"
	LivenessPath  = "/livez"
	ReadinessPath = "/readyz"
)

// Version is this release of the relay, X.Y.Z under semantic versioning, as the service
// information document and GET /health report it. They also report the build identity.
const Version = "0.1.0"

// DefaultSpendCapTransfersDay is the most that a fleet spends on transfers in a day, in
// lamports, unless another cap is set; 0 means no cap. A transfer pays the pool no fee. At 5080
// lamports of rent a byte it costs the relay 1 305 480 lamports, so the default pays for about
// 760 transfers. An attacker can make the fleet spend at most 1 SOL a day.
const DefaultSpendCapTransfersDay int64 = 1_000_000_000

// Paths of the documented interface, as relay/openapi.yaml and chi's patterns
// write them.
const (
	ServiceInfoPath        = "/"
	TransactPath           = "/transact"
	WithdrawPath           = "/withdraw"
	TransactSwapPath       = "/transact_swap"
	StatusPath             = "/status/{id}"
	ViewingKeyRegisterPath = "/viewing-key/register"
	CommitmentsPath        = "/commitments"
	MerkleRootPath         = "/merkle-root"
	BacklogPath            = "/backlog"
	ComplianceKeyPath      = "/compliance-key"
	HealthPath             = "/health"
)

// APIPaths lists every path of the documented interface. These are the values of a metric's
// route label, in addition to "unmatched".
func APIPaths() []string {
	return []string{
		ServiceInfoPath, TransactPath, WithdrawPath, TransactSwapPath, StatusPath, ViewingKeyRegisterPath,
		CommitmentsPath, MerkleRootPath, BacklogPath, ComplianceKeyPath, HealthPath,
	}
}
