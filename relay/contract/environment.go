package contract

// VariablePrefix starts the name of every environment variable of the relay; the rest
// is the flag's name in upper case, with underscores.
const VariablePrefix = "RELAYPOOL_"

// Names of the environment variables that `relay serve` reads. A flag takes precedence over the
// variable with the same meaning.
const (
	EnvListen                  = "RELAYPOOL_LISTEN"
	EnvOperationsListen        = "RELAYPOOL_OPERATIONS_LISTEN"
	EnvDatabaseURLFile         = "RELAYPOOL_DATABASE_URL_FILE"
	EnvDatabaseCAFile          = "RELAYPOOL_DATABASE_CA_FILE"
	EnvDatabaseClientCertFile  = "RELAYPOOL_DATABASE_CLIENT_CERT_FILE"
	EnvDatabaseClientKeyFile   = "RELAYPOOL_DATABASE_CLIENT_KEY_FILE"
	EnvDatabaseMaxConns        = "RELAYPOOL_DATABASE_MAX_CONNECTIONS"
	EnvRPCURL                  = "RELAYPOOL_RPC_URL"
	EnvRPCURLFile              = "RELAYPOOL_RPC_URL_FILE"
	EnvRPCCAFile               = "RELAYPOOL_RPC_CA_FILE"
	EnvRPCEndpointsFile        = "RELAYPOOL_RPC_ENDPOINTS_FILE"
	EnvGenesisHash             = "RELAYPOOL_GENESIS_HASH"
	EnvProfile                 = "RELAYPOOL_PROFILE"
	EnvProfileFile             = "RELAYPOOL_PROFILE_FILE"
	EnvMint                    = "RELAYPOOL_MINT"
	EnvProgramID               = "RELAYPOOL_PROGRAM_ID"
	EnvRootHistorySize         = "RELAYPOOL_ROOT_HISTORY_SIZE"
	EnvVerifyingKey            = "RELAYPOOL_VERIFYING_KEY"
	EnvProofA                  = "RELAYPOOL_PROOF_A"
	EnvOffCurveRecipient       = "RELAYPOOL_ALLOW_OFF_CURVE_RECIPIENT"
	EnvFeePayerKeyFile         = "RELAYPOOL_FEE_PAYER_KEY_FILE"
	EnvFeePayerSignersFile     = "RELAYPOOL_FEE_PAYER_SIGNERS_FILE"
	EnvFeePayerMinBalance      = "RELAYPOOL_FEE_PAYER_MIN_BALANCE"
	EnvSpendCapHour            = "RELAYPOOL_SPEND_CAP_HOUR"
	EnvSpendCapDay             = "RELAYPOOL_SPEND_CAP_DAY"
	EnvSpendCapTransfersDay    = "RELAYPOOL_SPEND_CAP_TRANSFERS_DAY"
	EnvPriorityFloor           = "RELAYPOOL_PRIORITY_FEE_FLOOR"
	EnvPriorityCap             = "RELAYPOOL_PRIORITY_FEE_CAP"
	EnvPriorityPercentile      = "RELAYPOOL_PRIORITY_FEE_PERCENTILE"
	EnvMaxEarlyFees            = "RELAYPOOL_MAX_EARLY_FEES"
	EnvLookupTable             = "RELAYPOOL_LOOKUP_TABLE"
	EnvTransactionFormat       = "RELAYPOOL_TRANSACTION_FORMAT"
	EnvRouterURL               = "RELAYPOOL_ROUTER_URL"
	EnvRouterURLFile           = "RELAYPOOL_ROUTER_URL_FILE"
	EnvRouterAPIKeyFile        = "RELAYPOOL_ROUTER_API_KEY_FILE"
	EnvRouterCAFile            = "RELAYPOOL_ROUTER_CA_FILE"
	EnvRouterFallbacksFile     = "RELAYPOOL_ROUTER_FALLBACKS_FILE"
	EnvRouterProgram           = "RELAYPOOL_ROUTER_PROGRAM"
	EnvRouterTimeout           = "RELAYPOOL_ROUTER_TIMEOUT"
	EnvRouterRequests          = "RELAYPOOL_ROUTER_REQUESTS_PER_SECOND"
	EnvSwapSlippage            = "RELAYPOOL_SWAP_SLIPPAGE_BPS"
	EnvSwapConcurrency         = "RELAYPOOL_SWAP_CONCURRENCY"
	EnvCompliancePublicKey     = "RELAYPOOL_COMPLIANCE_PUBLIC_KEY"
	EnvCompliancePublicKeyFile = "RELAYPOOL_COMPLIANCE_PUBLIC_KEY_FILE"
	EnvSignInMessages          = "RELAYPOOL_SIGN_IN_MESSAGES"
	EnvSignInMessagesFile      = "RELAYPOOL_SIGN_IN_MESSAGES_FILE"
	EnvConcurrency             = "RELAYPOOL_CONCURRENCY"
	EnvRetention               = "RELAYPOOL_RETENTION"
	EnvWait                    = "RELAYPOOL_WAIT"
	EnvWaitMax                 = "RELAYPOOL_WAIT_MAX"
	EnvRateLimit               = "RELAYPOOL_RATE_LIMIT"
	EnvClientIPHeader          = "RELAYPOOL_CLIENT_IP_HEADER"
	EnvCORSOrigins             = "RELAYPOOL_CORS_ORIGINS"
	EnvAPIKeysFile             = "RELAYPOOL_API_KEYS_FILE" //nolint:gosec // a variable's name, no key
	EnvLogLevel                = "RELAYPOOL_LOG_LEVEL"
	EnvLogFormat               = "RELAYPOOL_LOG_FORMAT"
)

// EnvironmentVariables lists every variable of `relay serve`.
func EnvironmentVariables() []string {
	return []string{
		EnvListen,
		EnvOperationsListen,
		EnvDatabaseURLFile,
		EnvDatabaseCAFile,
		EnvDatabaseClientCertFile,
		EnvDatabaseClientKeyFile,
		EnvDatabaseMaxConns,
		EnvRPCURL,
		EnvRPCURLFile,
		EnvRPCCAFile,
		EnvRPCEndpointsFile,
		EnvGenesisHash,
		EnvProfile,
		EnvProfileFile,
		EnvMint,
		EnvProgramID,
		EnvRootHistorySize,
		EnvVerifyingKey,
		EnvProofA,
		EnvOffCurveRecipient,
		EnvFeePayerKeyFile,
		EnvFeePayerSignersFile,
		EnvFeePayerMinBalance,
		EnvSpendCapHour,
		EnvSpendCapDay,
		EnvSpendCapTransfersDay,
		EnvPriorityFloor,
		EnvPriorityCap,
		EnvPriorityPercentile,
		EnvMaxEarlyFees,
		EnvLookupTable,
		EnvTransactionFormat,
		EnvRouterURL,
		EnvRouterURLFile,
		EnvRouterAPIKeyFile,
		EnvRouterCAFile,
		EnvRouterFallbacksFile,
		EnvRouterProgram,
		EnvRouterTimeout,
		EnvRouterRequests,
		EnvSwapSlippage,
		EnvSwapConcurrency,
		EnvCompliancePublicKey,
		EnvCompliancePublicKeyFile,
		EnvSignInMessages,
		EnvSignInMessagesFile,
		EnvConcurrency,
		EnvRetention,
		EnvWait,
		EnvWaitMax,
		EnvRateLimit,
		EnvClientIPHeader,
		EnvCORSOrigins,
		EnvAPIKeysFile,
		EnvLogLevel,
		EnvLogFormat,
	}
}
