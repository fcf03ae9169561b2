package contract

// Paths of the operations port.
const (
	MetricsPath   = "/metrics"
	LivenessPath  = "/livez"
	ReadinessPath = "/readyz"
)

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
