package config

import (
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
)

// Serve has the flags of `relay serve`. Defaults are for a local machine: every listening
// address is loopback.
type Serve struct {
	Listen           string `default:"127.0.0.1:8080" env:"RELAYPOOL_LISTEN" placeholder:"HOST:PORT" help:"Address that serves clients."`
	OperationsListen string `default:"127.0.0.1:9090" env:"RELAYPOOL_OPERATIONS_LISTEN" placeholder:"HOST:PORT" help:"Address that serves /metrics, /livez, /readyz, /backlog and /health with details. Not for clients."`

	Database `embed:"" prefix:"database-"`
	RPC      `embed:"" prefix:"rpc-"`

	GenesisHash            string   `env:"RELAYPOOL_GENESIS_HASH" placeholder:"BASE58" group:"Chain" help:"Genesis hash that the chain must have. Empty accepts any chain, and logs its hash."`
	Profile                string   `default:"shield-pool-v1" env:"RELAYPOOL_PROFILE" placeholder:"NAME" group:"Pool" help:"Program profile: shield-pool-v1 or development."`
	ProfileFile            string   `env:"RELAYPOOL_PROFILE_FILE" placeholder:"FILE" group:"Pool" help:"YAML file of a program profile, instead of a built-in one: base names the built-in profile to start from; every other key overrides a value."`
	Mint                   []string `env:"RELAYPOOL_MINT" placeholder:"ADDRESS=FIELD" group:"Pool" help:"Asset of the pool: a mint's address in base58, and the field element that stands for it in public inputs, 64 hexadecimal digits. May be repeated or separated by commas; the pool of the first mint is served. Empty uses the profile's."`
	ProgramID              string   `env:"RELAYPOOL_PROGRAM_ID" placeholder:"BASE58" group:"Pool" help:"Address of the pool program. Empty uses the profile's."`
	RootHistorySize        int      `env:"RELAYPOOL_ROOT_HISTORY_SIZE" placeholder:"ROOTS" group:"Pool" default:"0" help:"How many roots the pool program remembers, 2 to 300000; 0 uses the profile's. Only for a program that was built with another length than its profile's, such as a local chain: a wrong length makes the tree account fail its self-check."`
	VerifyingKey           string   `env:"RELAYPOOL_VERIFYING_KEY" placeholder:"FILE" group:"Pool" help:"Required. File of snarkjs' verification_key.json for the pool's circuit."`
	ProofA                 string   `default:"auto" env:"RELAYPOOL_PROOF_A" placeholder:"ENCODING" group:"Pool" help:"Encoding in which clients send point A of a proof: plain, negated, or auto, which accepts both until a finalized transaction has shown which encoding the program accepts."`
	AllowOffCurveRecipient bool     `env:"RELAYPOOL_ALLOW_OFF_CURVE_RECIPIENT" group:"Pool" help:"Also pay recipients without a private key, such as multisig vaults."`

	FeePayerKeyFile       []string `env:"RELAYPOOL_FEE_PAYER_KEY_FILE" placeholder:"FILE" group:"Fees" help:"File of a fee payer's secret key, as relay keygen writes it: a JSON array of 64 numbers, or base58. A directory means every file in it whose name does not begin with a dot. May be repeated or separated by commas: submissions are spread over all payers that have funds. Required, unless signers are listed."`
	SignersFile           `embed:""`
	FeePayerMinBalance    uint64 `default:"50000000" env:"RELAYPOOL_FEE_PAYER_MIN_BALANCE" placeholder:"LAMPORTS" group:"Fees" help:"Lamports below which a fee payer counts as empty and is not used; new work is refused while all payers are empty. A transaction costs about 1800000, nearly all of it rent."`
	SpendCapHour          uint64 `default:"0" env:"RELAYPOOL_SPEND_CAP_HOUR" placeholder:"LAMPORTS" group:"Fees" help:"Most lamports that the whole fleet spends in any 60 minutes; 0 for no cap. Above it new work is refused with spend_cap_reached and accepted work waits. A Transact costs 1300480 of rent, 5000 for the signature, and the priority fee: 1000000000 pays for about 760."`
	SpendCapDay           uint64 `default:"0" env:"RELAYPOOL_SPEND_CAP_DAY" placeholder:"LAMPORTS" group:"Fees" help:"Most lamports that the whole fleet spends in any 24 hours; 0 for no cap. A Transact costs about 1800000."`
	SpendCapTransfersDay  uint64 `default:"1000000000" env:"RELAYPOOL_SPEND_CAP_TRANSFERS_DAY" placeholder:"LAMPORTS" group:"Fees" help:"Most lamports that the whole fleet spends on transfers in any 24 hours; 0 for no cap. A transfer pays the pool no fee and costs the relay about 1800000 lamports like any Transact, so it is what somebody would send to empty the payers: the default pays for about 760."`
	PriorityFeeFloor      uint64 `default:"0" env:"RELAYPOOL_PRIORITY_FEE_FLOOR" placeholder:"MICRO-LAMPORTS" group:"Fees" help:"Least priority fee, in micro-lamports a compute unit."`
	PriorityFeeCap        uint64 `default:"1000000" env:"RELAYPOOL_PRIORITY_FEE_CAP" placeholder:"MICRO-LAMPORTS" group:"Fees" help:"Most priority fee, in micro-lamports a compute unit."`
	MaxEarlyFees          uint64 `default:"50000" env:"RELAYPOOL_MAX_EARLY_FEES" placeholder:"LAMPORTS" group:"Fees" help:"Most lamports that a submission's transactions may cost in vain because it was signed again, at a higher fee, before the earlier one was dead: the nullifier lets one of them succeed, and another that lands costs its fee. 0 waits until the earlier one is dead, about 30 seconds."`
	PriorityFeePercentile int    `default:"40" env:"RELAYPOOL_PRIORITY_FEE_PERCENTILE" placeholder:"PERCENT" group:"Fees" help:"Percentile of recent priority fees to pay, 0 to 100."`

	Router          `embed:"" prefix:"router-"`
	SwapSlippageBps int `default:"50" env:"RELAYPOOL_SWAP_SLIPPAGE_BPS" placeholder:"BPS" group:"Swaps" help:"By how many hundredths of a percent, 1 to 10000, the price may get worse between a quote and its execution. The user's minimum holds in any case: with too small a value, executions fail that would have met it."`
	SwapConcurrency int `default:"64" env:"RELAYPOOL_SWAP_CONCURRENCY" placeholder:"NUMBER" group:"Swaps" help:"Most swaps that this process executes or refunds at once."`
	// TransactionFormat is one of the formats in transactionformat.go.
	TransactionFormat string `default:"legacy" env:"RELAYPOOL_TRANSACTION_FORMAT" placeholder:"FORMAT" group:"Chain" help:"Format of transactions: legacy, which is version 0 with a lookup table; auto, which takes version 1 where it has to, for longer notes and for swaps; or v1 for all. Version 1 is used once two endpoints, or the only one, report that the network has activated it. Its transactions have up to 4096 bytes in place of 1232."`
	LookupTable       string `env:"RELAYPOOL_LOOKUP_TABLE" placeholder:"BASE58" group:"Chain" help:"The relay's own address lookup table for the pool's accounts, which leaves more room for notes in transactions. Empty for no table and legacy transactions."`

	CompliancePublicKey     string   `env:"RELAYPOOL_COMPLIANCE_PUBLIC_KEY" placeholder:"HEX" group:"Viewing keys" help:"Public key that viewing keys are sealed to: 64 hexadecimal digits, made by relay compliance keygen on the officer's own machine. Required, here or in a file."`
	CompliancePublicKeyFile string   `env:"RELAYPOOL_COMPLIANCE_PUBLIC_KEY_FILE" placeholder:"FILE" group:"Viewing keys" help:"File of the compliance public key, instead of the key itself."`
	SignInMessages          []string `env:"RELAYPOOL_SIGN_IN_MESSAGES" sep:"none" placeholder:"TEXT" group:"Viewing keys" help:"Text that a wallet signs to register its viewing key. May be repeated; the variable contains one text. Empty uses the profile's."`
	SignInMessagesFile      string   `env:"RELAYPOOL_SIGN_IN_MESSAGES_FILE" placeholder:"FILE" group:"Viewing keys" help:"YAML or JSON file with a list of such texts, instead of the texts themselves."`

	Concurrency    int           `default:"256" env:"RELAYPOOL_CONCURRENCY" placeholder:"NUMBER" help:"Submissions that this process has in flight at once."`
	Retention      time.Duration `default:"168h" env:"RELAYPOOL_RETENTION" placeholder:"DURATION" help:"How long GET /status returns a finished submission, at least 24h, which is how long an Idempotency-Key replays its outcome. Nullifiers of landed submissions stay reserved forever."`
	Wait           time.Duration `default:"30s" env:"RELAYPOOL_WAIT" placeholder:"DURATION" group:"Clients" help:"How long a request waits for its outcome, unless its Prefer header asks for another time."`
	WaitMax        time.Duration `default:"60s" env:"RELAYPOOL_WAIT_MAX" placeholder:"DURATION" group:"Clients" help:"Longest wait that a client may ask for."`
	RateLimit      int           `default:"600" env:"RELAYPOOL_RATE_LIMIT" placeholder:"REQUESTS" group:"Clients" help:"Requests a minute from one client address, to all relays with the same database URL together; 0 for no limit. Behind a proxy, set the client IP header as well, or all clients share one limit."`
	ClientIPHeader string        `env:"RELAYPOOL_CLIENT_IP_HEADER" placeholder:"NAME" group:"Clients" help:"Header in which the proxy in front writes the client's address, such as X-Real-IP. Empty uses the connection's. Without such a proxy clients could write it themselves and evade the limit."`
	CORSOrigins    []string      `env:"RELAYPOOL_CORS_ORIGINS" placeholder:"ORIGIN" group:"Clients" help:"Origins of web pages that may call the interface, such as https://app.example, or *. Separated by commas. Empty for none."`
	APIKeysFile    string        `env:"RELAYPOOL_API_KEYS_FILE" placeholder:"FILE" group:"Clients" help:"File of API keys, one per line: the key, perhaps a name for logs and metrics, and perhaps how many requests a minute all its clients may make, in place of the limit by address. Several keys may have one name, so that a key can be replaced. Empty lines and lines that begin with # are ignored. Every route except GET /health then requires a key as Authorization: Bearer KEY. Read again when it changes. Empty serves everybody."`

	Logging `embed:"" prefix:"log-"`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// Load checks all flags and reads their files. The fee payers' keys are read later, where
// they are used. The error of Load is commandline.Problems: all problems at once, without
// secrets.
func (s Serve) Load() (*Config, error) {
	c := &Config{Serve: s}
	c.EarlierProblems = nil
	problems := append(commandline.Problems{}, s.EarlierProblems...)
	addProblem := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	var err error
	var found []error
	c.DatabaseURL, found = s.Database.Load()
	problems = append(problems, found...)
	c.Endpoints, found = s.RPC.Load()
	problems = append(problems, found...)
	c.Genesis, err = s.genesis()
	addProblem(err)
	c.Profile, found = s.profile()
	problems = append(problems, found...)
	c.Key, err = verifyingKey(s.VerifyingKey)
	addProblem(err)
	c.CompliancePublicKey, err = s.complianceKey()
	addProblem(err)
	c.Swaps, found = s.swaps()
	problems = append(problems, found...)
	c.LookupTable, err = s.lookupTable()
	addProblem(err)
	c.APIKeys, err = s.ReadAPIKeys()
	addProblem(err)
	problems = append(problems, s.checkTransactionFormat(c.Profile)...)
	problems = append(problems, s.checkKeyFiles()...)
	c.Signers, found = s.SignersFile.LoadSigners()
	problems = append(problems, found...)
	problems = append(problems, s.checkNumbers()...)
	problems = append(problems, s.checkClients()...)
	problems = append(problems, s.Logging.check()...)
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}
