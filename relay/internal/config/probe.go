package config

import (
	"slices"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// maxProbe bounds how long `relay probe` waits for one endpoint.
const maxProbe = 5 * time.Minute

// Probe has the flags of `relay probe`. The flags that describe the chain, the pool and the
// fee payers have the same names and environment variables as those of `relay serve`.
type Probe struct {
	RPC     `embed:"" prefix:"rpc-"`
	Logging `embed:"" prefix:"log-"`

	GenesisHash        string   `env:"RELAYPOOL_GENESIS_HASH" placeholder:"BASE58" group:"Chain" help:"Genesis hash that the chain must have. Empty accepts any, as long as all endpoints have the same."`
	Profile            string   `default:"shield-pool-v1" env:"RELAYPOOL_PROFILE" placeholder:"NAME" group:"Pool" help:"Program profile: shield-pool-v1 or development."`
	ProfileFile        string   `env:"RELAYPOOL_PROFILE_FILE" placeholder:"FILE" group:"Pool" help:"YAML file of a program profile, instead of a built-in one."`
	Mint               []string `env:"RELAYPOOL_MINT" placeholder:"ADDRESS=FIELD" group:"Pool" help:"Asset of the pool, as for relay serve. Empty uses the profile's."`
	ProgramID          string   `env:"RELAYPOOL_PROGRAM_ID" placeholder:"BASE58" group:"Pool" help:"Address of the pool program. Empty uses the profile's."`
	RootHistorySize    int      `env:"RELAYPOOL_ROOT_HISTORY_SIZE" placeholder:"ROOTS" group:"Pool" default:"0" help:"How many roots the pool program keeps; 0 uses the profile's."`
	VerifyingKey       string   `env:"RELAYPOOL_VERIFYING_KEY" placeholder:"FILE" group:"Pool" help:"File of snarkjs' verification_key.json. Empty leaves the key unchecked."`
	FeePayerKeyFile    []string `env:"RELAYPOOL_FEE_PAYER_KEY_FILE" placeholder:"FILE" group:"Fees" help:"File of a fee payer's secret key, or a directory of such files. May be repeated. Empty leaves the payers unchecked."`
	SignersFile        `embed:""`
	FeePayerMinBalance uint64 `default:"50000000" env:"RELAYPOOL_FEE_PAYER_MIN_BALANCE" placeholder:"LAMPORTS" group:"Fees" help:"Lamports below which a fee payer counts as empty."`

	Timeout time.Duration `default:"10s" placeholder:"DURATION" help:"Time limit of one endpoint for all requests of one kind."`
	History int           `default:"25" placeholder:"NUMBER" help:"How many of the tree's newest transactions to search for a Transact and a TransactSwap, which are compared with the profile; 0 for no comparison."`
	Output  string        `default:"table" placeholder:"FORMAT" help:"table, or json."`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// ProbeRequest is the input of `relay probe`.
type ProbeRequest struct {
	Endpoints []Endpoint
	Profile   *shieldpool.Profile
	// Genesis is the zero hash when any chain is accepted.
	Genesis solana.Hash
	// Key is nil if no verifying key is to be checked.
	Key *groth16.Key
	// Signers are the fee payers whose keys are in key services.
	Signers []Signer
}

// Load checks the flags and reads the files, except the fee payers' keys. Its error is
// commandline.Problems.
func (p Probe) Load() (*ProbeRequest, error) {
	problems := append(commandline.Problems{}, p.EarlierProblems...)
	// These flags have the same meaning as in `relay serve`.
	serve := Serve{
		GenesisHash: p.GenesisHash, Profile: p.Profile, ProfileFile: p.ProfileFile, Mint: p.Mint, ProgramID: p.ProgramID, RootHistorySize: p.RootHistorySize,
		FeePayerKeyFile: p.FeePayerKeyFile,
	}
	out, err := new(ProbeRequest), error(nil)
	var found []error
	out.Endpoints, found = p.RPC.Load()
	problems = append(problems, found...)
	out.Profile, found = serve.profile()
	problems = append(problems, found...)
	if out.Genesis, err = serve.genesis(); err != nil {
		problems = append(problems, err)
	}
	if p.VerifyingKey != "" {
		if out.Key, err = verifyingKey(p.VerifyingKey); err != nil {
			problems = append(problems, err)
		}
	}
	if len(p.FeePayerKeyFile) > 0 {
		problems = append(problems, serve.checkKeyFiles()...)
	}
	out.Signers, found = p.SignersFile.LoadSigners()
	problems = append(problems, found...)
	if p.Timeout <= 0 || p.Timeout > maxProbe {
		problems = append(problems, flagProblem("timeout", "expected more than 0s and up to %s, received %s", maxProbe, p.Timeout))
	}
	if p.History < 0 || p.History > 1000 {
		problems = append(problems, flagProblem("history", "expected 0 to 1000 transactions, received %d", p.History))
	}
	if !slices.Contains([]string{"table", "json"}, p.Output) {
		problems = append(problems, flagProblem("output", "expected table or json, received another value of %d characters", len(p.Output)))
	}
	problems = append(problems, p.Logging.check()...)
	if len(problems) > 0 {
		return nil, problems
	}
	return out, nil
}
