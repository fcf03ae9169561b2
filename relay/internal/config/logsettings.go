package config

import (
	"fmt"
	"log/slog"
)

// LogValue returns the settings in use. In place of a secret it has the name of the secret's
// file.
func (c *Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("listen", c.Listen),
		slog.String("operations_listen", c.OperationsListen),
		slog.String("database_url_file", c.Database.URLFile),
		slog.String("database_ca_file", c.Database.CAFile),
		slog.String("database_client_cert_file", c.Database.ClientCertFile),
		slog.String("database_client_key_file", c.Database.ClientKeyFile),
		slog.Int("database_max_connections", int(c.Database.MaxConnections)),
		slog.String("rpc_url_file", c.RPC.URLFile),
		slog.String("rpc_ca_file", c.RPC.CAFile),
		slog.String("rpc_endpoints_file", c.EndpointsFile),
		slog.Any("rpc_endpoints", c.Endpoints),
		slog.String("genesis_hash", c.GenesisHash),
		slog.String("profile", c.Serve.Profile),
		slog.String("profile_file", c.ProfileFile),
		slog.String("profile_name", c.Profile.Name),
		slog.Int("mints", len(c.Profile.Mints)),
		slog.String("program_id", c.Profile.ProgramID.String()),
		slog.Int("root_history_size", c.Profile.RootHistory),
		slog.String("verifying_key", c.VerifyingKey),
		slog.String("proof_a", c.ProofA),
		slog.Bool("allow_off_curve_recipient", c.AllowOffCurveRecipient),
		slog.Any("fee_payer_key_file", c.FeePayerKeyFile),
		slog.Uint64("fee_payer_min_balance", c.FeePayerMinBalance),
		slog.Uint64("spend_cap_hour", c.SpendCapHour),
		slog.Uint64("spend_cap_day", c.SpendCapDay),
		slog.Uint64("spend_cap_transfers_day", c.SpendCapTransfersDay),
		slog.Uint64("priority_fee_floor", c.PriorityFeeFloor),
		slog.Uint64("priority_fee_cap", c.PriorityFeeCap),
		slog.Int("priority_fee_percentile", c.PriorityFeePercentile),
		slog.Uint64("max_early_fees", c.MaxEarlyFees),
		slog.String("lookup_table", c.Serve.LookupTable),
		slog.Bool("swaps", c.Swaps != nil),
		slog.String("router_url_file", c.Router.URLFile),
		slog.String("router_api_key_file", c.Router.APIKeyFile),
		slog.String("router_ca_file", c.Router.CAFile),
		slog.String("router_fallbacks_file", c.Router.FallbacksFile),
		slog.String("router_program", c.Router.Program),
		slog.Duration("router_timeout", c.Router.Timeout),
		slog.Int("router_requests_per_second", c.Router.RequestsPerSecond),
		slog.Int("swap_slippage_bps", c.SwapSlippageBps),
		slog.Int("swap_concurrency", c.SwapConcurrency),
		slog.String("compliance_public_key", fmt.Sprintf("%x", c.CompliancePublicKey)),
		slog.Int("sign_in_messages", len(c.Profile.SignInMessages)),
		slog.Int("concurrency", c.Concurrency),
		slog.Duration("retention", c.Retention),
		slog.Duration("wait", c.Wait),
		slog.Duration("wait_max", c.WaitMax),
		slog.Int("rate_limit", c.RateLimit),
		slog.String("client_ip_header", c.ClientIPHeader),
		slog.Any("cors_origins", c.CORSOrigins),
		slog.String("log_level", c.Level),
		slog.String("log_format", c.Logging.Format),
	)
}
