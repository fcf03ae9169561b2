package config

import (
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Sweep has the flags that all steps of `relay sweep` share. They mean the same as the flags
// of the same name in `relay serve`, except that the genesis hash is required here.
type Sweep struct {
	Database `embed:"" prefix:"database-"`
	RPC      `embed:"" prefix:"rpc-"`
	Logging  `embed:"" prefix:"log-"`

	GenesisHash           string        `env:"RELAYPOOL_GENESIS_HASH" placeholder:"BASE58" group:"Chain" help:"Required. Genesis hash that the chain must have: nothing is signed for another chain. relay serve logs the hash of its chain at start."`
	PriorityFeeFloor      uint64        `default:"0" env:"RELAYPOOL_PRIORITY_FEE_FLOOR" placeholder:"MICRO-LAMPORTS" group:"Fees" help:"Least priority fee, in micro-lamports a compute unit."`
	PriorityFeeCap        uint64        `default:"1000000" env:"RELAYPOOL_PRIORITY_FEE_CAP" placeholder:"MICRO-LAMPORTS" group:"Fees" help:"Most priority fee, in micro-lamports a compute unit. A sweep asks for 6000 units."`
	PriorityFeePercentile int           `default:"40" env:"RELAYPOOL_PRIORITY_FEE_PERCENTILE" placeholder:"PERCENT" group:"Fees" help:"Percentile of recent priority fees to pay, 0 to 100."`
	Timeout               time.Duration `default:"15m" placeholder:"DURATION" help:"How long the step tries and waits before it ends with code 3. Run it again to continue."`
	TerminationLog        string        `placeholder:"FILE" help:"File for one line about the outcome. Empty means /dev/termination-log if it exists, as in a Kubernetes container."`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// SweepRequest is the input of a step of `relay sweep`.
type SweepRequest struct {
	DatabaseURL DatabaseURL
	Endpoints   []Endpoint
	Genesis     solana.Hash
}

// Load checks the flags and reads the files. stepProblems are the problems of the step's own flags.
// The error of Load is commandline.Problems.
func (s Sweep) Load(stepProblems ...error) (*SweepRequest, error) {
	problems := append(commandline.Problems{}, s.EarlierProblems...)
	request, err := new(SweepRequest), error(nil)
	database, found := s.Database.Load()
	request.DatabaseURL, problems = database, append(problems, found...)
	endpoints, found := s.RPC.Load()
	request.Endpoints, problems = endpoints, append(problems, found...)
	if s.GenesisHash == "" {
		problems = append(problems, commandline.Problem("genesis-hash", "is missing: give the hash of the chain on which the keys hold lamports; relay serve logs it at start"))
	} else if request.Genesis, err = (Serve{GenesisHash: s.GenesisHash}).genesis(); err != nil {
		problems = append(problems, err)
	}
	if s.PriorityFeeFloor > s.PriorityFeeCap {
		problems = append(problems, commandline.Problem("priority-fee-floor", "expected at most %s, which is %d, received %d", commandline.Setting("priority-fee-cap"), s.PriorityFeeCap, s.PriorityFeeFloor))
	}
	if s.PriorityFeePercentile < 0 || s.PriorityFeePercentile > 100 {
		problems = append(problems, commandline.Problem("priority-fee-percentile", "expected 0 to 100, received %d", s.PriorityFeePercentile))
	}
	if s.Timeout <= 0 {
		problems = append(problems, flagProblem("timeout", "expected more than 0s, received %s", s.Timeout))
	}
	problems = append(problems, s.Logging.check()...)
	for _, p := range stepProblems {
		if p != nil {
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return request, nil
}

// CheckBalance refuses a balance below the rent-exempt minimum, because no account may have
// such a balance.
func CheckBalance(flag string, lamports uint64) error {
	if lamports < shieldpool.RentExempt {
		return flagProblem(flag, "expected at least the %d lamports that an account has to hold to exist, received %d", shieldpool.RentExempt, lamports)
	}
	return nil
}

// ParseAddress parses the address of a key. Its error contains only the length of the text. If
// somebody gives a secret key instead of an address, the key must not get into the log.
func ParseAddress(flag, text string) (solana.PublicKey, error) {
	key, err := solana.PublicKeyFromBase58(text)
	switch {
	case err != nil:
		return key, flagProblem(flag, "expected an address in base58 or the file of a key, received another value of %d characters", len(text))
	case key.IsZero() || !key.IsOnCurve():
		return key, flagProblem(flag, "expected the address of a key, received one without a private key: nobody could spend its lamports")
	}
	return key, nil
}
