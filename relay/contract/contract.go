// Package contract is what operator and relay agree on: ports, paths,
// environment, metric names and drain timings. Each stands here once, and
// nowhere else; the package needs the standard library only.
package contract

import "time"

// Default ports.
const (
	// APIPort serves clients.
	APIPort = 8080
	// OperationsPort serves metrics and probes.
	OperationsPort = 9090
	// LocalChainPort is where the local chain listens.
	LocalChainPort = 8899
)

// Paths of the operations port.
const (
	MetricsPath   = "/metrics"
	LivenessPath  = "/livez"
	ReadinessPath = "/readyz"
)

// Names of the environment variables that relay serve reads. A flag of the
// same meaning wins.
const (
	EnvListen              = "RELAYPOOL_LISTEN"
	EnvOperationsListen    = "RELAYPOOL_OPERATIONS_LISTEN"
	EnvDatabaseURLFile     = "RELAYPOOL_DATABASE_URL_FILE"
	EnvDatabaseMaxConns    = "RELAYPOOL_DATABASE_MAX_CONNECTIONS"
	EnvRPCURL              = "RELAYPOOL_RPC_URL"
	EnvRPCURLFile          = "RELAYPOOL_RPC_URL_FILE"
	EnvGenesisHash         = "RELAYPOOL_GENESIS_HASH"
	EnvProfile             = "RELAYPOOL_PROFILE"
	EnvProgramID           = "RELAYPOOL_PROGRAM_ID"
	EnvVerifyingKey        = "RELAYPOOL_VERIFYING_KEY"
	EnvProofA              = "RELAYPOOL_PROOF_A"
	EnvOffCurveRecipient   = "RELAYPOOL_ALLOW_OFF_CURVE_RECIPIENT"
	EnvFeePayerKeyFile     = "RELAYPOOL_FEE_PAYER_KEY_FILE"
	EnvFeePayerMinBalance  = "RELAYPOOL_FEE_PAYER_MIN_BALANCE"
	EnvPriorityFloor       = "RELAYPOOL_PRIORITY_FEE_FLOOR"
	EnvPriorityCap         = "RELAYPOOL_PRIORITY_FEE_CAP"
	EnvPriorityPercentile  = "RELAYPOOL_PRIORITY_FEE_PERCENTILE"
	EnvCompliancePublicKey = "RELAYPOOL_COMPLIANCE_PUBLIC_KEY"
	EnvSignInMessages      = "RELAYPOOL_SIGN_IN_MESSAGES"
	EnvConcurrency         = "RELAYPOOL_CONCURRENCY"
	EnvWait                = "RELAYPOOL_WAIT"
	EnvWaitMax             = "RELAYPOOL_WAIT_MAX"
	EnvRateLimit           = "RELAYPOOL_RATE_LIMIT"
	EnvClientIPHeader      = "RELAYPOOL_CLIENT_IP_HEADER"
	EnvCORSOrigins         = "RELAYPOOL_CORS_ORIGINS"
	EnvLogLevel            = "RELAYPOOL_LOG_LEVEL"
	EnvLogFormat           = "RELAYPOOL_LOG_FORMAT"
)

// Drain timings, from the moment a pod is told to go. The sum is the pod's
// grace period, so that a shutdown never cancels a send.
const (
	// PreStop lets endpoints forget the pod before it gets SIGTERM.
	PreStop = 5 * time.Second
	// HTTPShutdown lets waiting clients hear their outcome.
	HTTPShutdown = 35 * time.Second
	// QueueStop lets running steps end.
	QueueStop = 10 * time.Second
	// HandOver gives the leases of what is still under way back.
	HandOver = 10 * time.Second
	// Margin is for what the others do not count.
	Margin = 5 * time.Second
	// TerminationGrace is the pod's terminationGracePeriodSeconds.
	TerminationGrace = PreStop + HTTPShutdown + QueueStop + HandOver + Margin
)
