// Package config is everything that can be set about a relay: flags and
// environment in one struct, validated whole at start, with secrets read from
// files only.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Serve holds the flags of relay serve. Defaults are for a machine of one's
// own: every listening address is loopback.
type Serve struct {
	Listen           string `default:"127.0.0.1:8080" env:"RELAYPOOL_LISTEN" help:"Address that serves clients."`
	OperationsListen string `default:"127.0.0.1:9090" env:"RELAYPOOL_OPERATIONS_LISTEN" help:"Address that serves /metrics, /livez and /readyz."`

	Database `embed:"" prefix:"database-"`
	RPC      `embed:"" prefix:"rpc-"`

	GenesisHash            string `env:"RELAYPOOL_GENESIS_HASH" help:"Genesis hash (base58) that the chain must have. Empty takes the chain as it is, and logs it."`
	Profile                string `default:"shield-pool-v1" env:"RELAYPOOL_PROFILE" help:"Program profile: shield-pool-v1 or development."`
	ProgramID              string `env:"RELAYPOOL_PROGRAM_ID" help:"Address of the pool program (base58). Empty takes the profile's."`
	VerifyingKey           string `env:"RELAYPOOL_VERIFYING_KEY" help:"File of snarkjs' verification_key.json for the pool's circuit." type:"path"`
	ProofA                 string `default:"auto" enum:"auto,plain,negated" env:"RELAYPOOL_PROOF_A" help:"Sign in which clients send the proof's A: auto takes either until a finalized transaction has shown which one the program takes."`
	AllowOffCurveRecipient bool   `env:"RELAYPOOL_ALLOW_OFF_CURVE_RECIPIENT" help:"Pay recipients without a private key, such as multisig vaults."`

	FeePayerKeyFile    string `env:"RELAYPOOL_FEE_PAYER_KEY_FILE" help:"File of the fee payer's key: Solana's JSON array, or base58. Secret." type:"path"`
	FeePayerMinBalance uint64 `default:"50000000" env:"RELAYPOOL_FEE_PAYER_MIN_BALANCE" help:"Lamports below which the fee payer counts as empty and new work is refused."`

	PriorityFeeFloor      uint64 `default:"0" env:"RELAYPOOL_PRIORITY_FEE_FLOOR" help:"Least priority fee, in micro-lamports a compute unit."`
	PriorityFeeCap        uint64 `default:"1000000" env:"RELAYPOOL_PRIORITY_FEE_CAP" help:"Most priority fee, in micro-lamports a compute unit."`
	PriorityFeePercentile int    `default:"50" env:"RELAYPOOL_PRIORITY_FEE_PERCENTILE" help:"Percentile of recent priority fees to pay, 0 to 100."`

	CompliancePublicKey string   `env:"RELAYPOOL_COMPLIANCE_PUBLIC_KEY" help:"Public key that viewing keys are sealed to: 64 hex, made by relay compliance keygen on the officer's own machine."`
	SignInMessages      []string `env:"RELAYPOOL_SIGN_IN_MESSAGES" sep:"none" help:"Text whose signature admits a viewing key. May be repeated. Empty takes the profile's."`

	Concurrency    int           `default:"256" env:"RELAYPOOL_CONCURRENCY" help:"Steps of submissions that this process runs at once."`
	Wait           time.Duration `default:"30s" env:"RELAYPOOL_WAIT" help:"How long a submission waits for its outcome unless the client's Prefer header says otherwise."`
	WaitMax        time.Duration `default:"60s" env:"RELAYPOOL_WAIT_MAX" help:"Longest wait that a client may ask for."`
	RateLimit      int           `default:"600" env:"RELAYPOOL_RATE_LIMIT" help:"Requests a minute from one client address; 0 for no limit."`
	ClientIPHeader string        `env:"RELAYPOOL_CLIENT_IP_HEADER" help:"Header in which a trusted proxy names the client's address. Empty takes the connection's."`
	CORSOrigins    []string      `env:"RELAYPOOL_CORS_ORIGINS" help:"Origins of web pages that may call the interface. Empty for none."`

	Logging `embed:"" prefix:"log-"`
}

// Database says where the fleet's Postgres is.
type Database struct {
	URLFile        string `env:"RELAYPOOL_DATABASE_URL_FILE" help:"File of the Postgres URL, postgres://user:password@host:port/name. Secret." type:"path"`
	MaxConnections int32  `default:"40" env:"RELAYPOOL_DATABASE_MAX_CONNECTIONS" help:"Most connections to the database."`
}

// RPC says where the chain is.
type RPC struct {
	URL     string `env:"RELAYPOOL_RPC_URL" help:"Solana JSON-RPC endpoint, when its URL holds no credentials."`
	URLFile string `env:"RELAYPOOL_RPC_URL_FILE" help:"File of the endpoint's URL, when it holds credentials. Secret." type:"path"`
}

// Logging says how to log.
type Logging struct {
	Level  string `default:"info" enum:"debug,info,warn,error" env:"RELAYPOOL_LOG_LEVEL" help:"Least level that is logged: debug, info, warn or error."`
	Format string `default:"auto" enum:"auto,json,text" env:"RELAYPOOL_LOG_FORMAT" help:"json, text, or auto: text on a terminal."`
}

// Secret is a value that no print, log or encoding shows.
type Secret struct{ value string }

// Reveal gives the value to the one place that needs it.
func (s Secret) Reveal() string { return s.value }

const redacted = "(secret)"

// String shows a placeholder.
func (Secret) String() string { return redacted }

// GoString shows a placeholder.
func (Secret) GoString() string { return redacted }

// LogValue shows a placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText shows a placeholder.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Config is a Serve that holds together: parsed, read from its files and checked.
type Config struct {
	Serve

	DatabaseURL, RPCEndpoint Secret
	Profile                  *shieldpool.Profile
	// Genesis is the zero hash when the chain's own is taken.
	Genesis             solana.Hash
	Key                 *groth16.Key
	CompliancePublicKey [32]byte
}

// Load checks everything and reads the files. Its error lists every problem at
// once, and repeats no secret.
func (s Serve) Load() (*Config, error) {
	c := &Config{Serve: s}
	var problems []error
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	var err error

	if c.DatabaseURL, err = secretFile("--database-url-file", s.Database.URLFile); err != nil {
		fail("%w", err)
	}
	if c.RPCEndpoint, err = s.RPC.endpoint(); err != nil {
		fail("%w", err)
	}
	if c.Profile, err = s.profile(); err != nil {
		fail("%w", err)
	}
	if s.GenesisHash != "" {
		if c.Genesis, err = solana.HashFromBase58(s.GenesisHash); err != nil {
			fail("--genesis-hash is not 32 bytes in base58, it has %d characters", len(s.GenesisHash))
		}
	}
	if c.Key, err = verifyingKey(s.VerifyingKey); err != nil {
		fail("%w", err)
	}
	if s.CompliancePublicKey == "" {
		fail("--compliance-public-key is missing: make a pair with relay compliance keygen on the officer's own machine, and give the public half here")
	} else if c.CompliancePublicKey, err = viewingkey.ParsePublicKey(s.CompliancePublicKey); err != nil {
		fail("--compliance-public-key: %w", err)
	}
	if s.FeePayerKeyFile == "" {
		fail("--fee-payer-key-file is missing: make a key with relay keygen, and fund its address")
	}
	problems = append(problems, s.checkNumbers()...)
	problems = append(problems, s.checkAddresses()...)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return c, nil
}
