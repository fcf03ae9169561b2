// Package contract is what operator and relay agree on: ports, paths,
// environment, metric names and drain timings. Each stands here once, and
// nowhere else; the package needs the standard library only.
package contract

// Default ports.
const (
	// APIPort serves clients.
	APIPort = 8080
	// OperationsPort serves metrics and probes.
	OperationsPort = 9090
	// LocalChainPort is where the local chain listens.
	LocalChainPort = 8899
	// LocalAdminPort is where the local chain takes orders, and LocalRouterPort
	// where the router over its market does.
	LocalAdminPort  = 8898
	LocalRouterPort = 8897
)

// Paths of the operations port.
const (
	MetricsPath   = "/metrics"
	LivenessPath  = "/livez"
	ReadinessPath = "/readyz"
)

// Version is this release of the relay, X.Y.Z under semantic versioning, as the
// service information document and GET /health give it. Exactly what was built
// is in the build identity beside it.
const Version = "0.1.0"

// DefaultSpendCapTransfersDay is what a fleet spends at most on transfers in a day,
// in lamports, unless it is told otherwise: a transfer pays the pool no fee and costs
// its relay 1 786 760, so that some 550 are paid for, and an attacker takes no more
// than 1 SOL a day. 0, where it is set, is no cap.
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

// APIPaths lists every path of the documented interface: the values that a
// metric's route label has, besides "unmatched".
func APIPaths() []string {
	return []string{
		ServiceInfoPath, TransactPath, WithdrawPath, TransactSwapPath, StatusPath, ViewingKeyRegisterPath,
		CommitmentsPath, MerkleRootPath, BacklogPath, ComplianceKeyPath, HealthPath,
	}
}
