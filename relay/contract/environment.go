package contract

// EnvPrefix starts the name of every environment variable of the relay.
const EnvPrefix = "RELAYPOOL_"

// The environment variables of `relay serve`. Each is the flag of the same
// name, upper case and with underscores; docs/configuration.md explains them.
// Those that end in _FILE hold a path.
const (
	EnvListen           = "RELAYPOOL_LISTEN"
	EnvOperationsListen = "RELAYPOOL_OPERATIONS_LISTEN"

	EnvDatabaseURLFile  = "RELAYPOOL_DATABASE_URL_FILE"
	EnvDatabaseMaxConns = "RELAYPOOL_DATABASE_MAX_CONNS"

	EnvRPCURL      = "RELAYPOOL_RPC_URL"
	EnvRPCURLFile  = "RELAYPOOL_RPC_URL_FILE"
	EnvGenesisHash = "RELAYPOOL_GENESIS_HASH"
	EnvCommitment  = "RELAYPOOL_COMMITMENT"

	EnvProfile                = "RELAYPOOL_PROFILE"
	EnvProgramID              = "RELAYPOOL_PROGRAM_ID"
	EnvVerifyingKeyFile       = "RELAYPOOL_VERIFYING_KEY_FILE"
	EnvProofA                 = "RELAYPOOL_PROOF_A"
	EnvAllowOffCurveRecipient = "RELAYPOOL_ALLOW_OFF_CURVE_RECIPIENT"

	EnvFeePayerKeyFile       = "RELAYPOOL_FEE_PAYER_KEY_FILE"
	EnvFeePayerMinBalance    = "RELAYPOOL_FEE_PAYER_MIN_BALANCE"
	EnvPriorityFeeFloor      = "RELAYPOOL_PRIORITY_FEE_FLOOR"
	EnvPriorityFeeCap        = "RELAYPOOL_PRIORITY_FEE_CAP"
	EnvPriorityFeePercentile = "RELAYPOOL_PRIORITY_FEE_PERCENTILE"
	EnvComputeMargin         = "RELAYPOOL_COMPUTE_MARGIN"

	EnvCompliancePublicKey     = "RELAYPOOL_COMPLIANCE_PUBLIC_KEY"
	EnvCompliancePublicKeyFile = "RELAYPOOL_COMPLIANCE_PUBLIC_KEY_FILE"
	EnvSignInMessage           = "RELAYPOOL_SIGN_IN_MESSAGE"

	EnvWaitDefault    = "RELAYPOOL_WAIT_DEFAULT"
	EnvWaitMax        = "RELAYPOOL_WAIT_MAX"
	EnvRateLimit      = "RELAYPOOL_RATE_LIMIT"
	EnvClientIPHeader = "RELAYPOOL_CLIENT_IP_HEADER"
	EnvCORSOrigin     = "RELAYPOOL_CORS_ORIGIN"
	EnvConcurrency    = "RELAYPOOL_CONCURRENCY"

	EnvLogLevel  = "RELAYPOOL_LOG_LEVEL"
	EnvLogFormat = "RELAYPOOL_LOG_FORMAT"
)

// EnvironmentVariables lists every variable above.
func EnvironmentVariables() []string {
	return []string{
		EnvListen,
		EnvOperationsListen,
		EnvDatabaseURLFile,
		EnvDatabaseMaxConns,
		EnvRPCURL,
		EnvRPCURLFile,
		EnvGenesisHash,
		EnvCommitment,
		EnvProfile,
		EnvProgramID,
		EnvVerifyingKeyFile,
		EnvProofA,
		EnvAllowOffCurveRecipient,
		EnvFeePayerKeyFile,
		EnvFeePayerMinBalance,
		EnvPriorityFeeFloor,
		EnvPriorityFeeCap,
		EnvPriorityFeePercentile,
		EnvComputeMargin,
		EnvCompliancePublicKey,
		EnvCompliancePublicKeyFile,
		EnvSignInMessage,
		EnvWaitDefault,
		EnvWaitMax,
		EnvRateLimit,
		EnvClientIPHeader,
		EnvCORSOrigin,
		EnvConcurrency,
		EnvLogLevel,
		EnvLogFormat,
	}
}
