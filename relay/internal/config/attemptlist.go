package config

import (
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
)

// AttemptList has the flags of `relay attempts`.
type AttemptList struct {
	Database `embed:"" prefix:"database-"`
	RPC      `embed:"" prefix:"rpc-"`
	Logging  `embed:"" prefix:"log-"`

	Older time.Duration `default:"5m" placeholder:"DURATION" help:"List attempts that were signed longer ago than this."`
	Limit int           `default:"200" placeholder:"NUMBER" help:"Most attempts to list."`
	JSON  bool          `name:"json" help:"Print JSON instead of a table."`
	End   bool          `help:"Ask only the given RPC endpoints whether the attempts of submissions held by chain_expiry can still land, and mark attempts that cannot land as dead; the relays then continue these submissions at once. Give endpoints that you trust: if you give several, two have to agree."`
	Wait  time.Duration `default:"3m" placeholder:"DURATION" help:"How long --end keeps asking. A blockhash whose recorded height is wrong needs a little over a minute."`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// Load checks the flags, and reads the database's URL and the endpoints from their files. It
// returns no endpoints if no flag names one; the command then does not read the chain. Its
// error is commandline.Problems.
func (a AttemptList) Load() (database DatabaseURL, endpoints []Endpoint, err error) {
	problems := append(commandline.Problems{}, a.EarlierProblems...)
	database, found := a.Database.Load()
	problems = append(problems, found...)
	if a.URL.Reveal() != "" || a.RPC.URLFile != "" || a.EndpointsFile != "" {
		endpoints, found = a.RPC.Load()
		problems = append(problems, found...)
	} else if a.End {
		problems = append(problems, flagProblem("end", "expected RPC endpoints to ask, received none"))
	}
	if a.Limit < 1 || a.Limit > maxListed {
		problems = append(problems, flagProblem("limit", "expected 1 to %d, received %d", maxListed, a.Limit))
	}
	if a.Older < 0 {
		problems = append(problems, flagProblem("older", "expected a duration that is not below zero, received %s", a.Older))
	}
	if a.Wait < 0 {
		problems = append(problems, flagProblem("wait", "expected a duration that is not below zero, received %s", a.Wait))
	}
	problems = append(problems, a.Logging.check()...)
	if len(problems) > 0 {
		return DatabaseURL{}, nil, problems
	}
	return database, endpoints, nil
}
