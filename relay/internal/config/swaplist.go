package config

import (
	"github.com/relaypool/relaypool/relay/commandline"
)

// maxListed bounds the lists of `relay swaps` and `relay attempts`.
const maxListed = 100_000

// SwapList has the flags of `relay swaps`.
type SwapList struct {
	Database `embed:"" prefix:"database-"`
	RPC      `embed:"" prefix:"rpc-"`
	Logging  `embed:"" prefix:"log-"`

	All     bool `help:"Also list swaps that have ended, the newest first, as far as retention keeps them."`
	Overdue bool `help:"List only swaps that are past their timeout slot and neither executed nor refunded, and end with code 1 when there are any."`
	Limit   int  `default:"200" placeholder:"NUMBER" help:"Most swaps to list of each kind: ended, and not ended. The last line counts all."`
	JSON    bool `name:"json" help:"Print JSON instead of a table."`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// Load checks the flags, and reads the database's URL and the endpoints from their files. It
// returns no endpoints if no flag names one; the command then does not read the chain. Its
// error is commandline.Problems.
func (s SwapList) Load() (database DatabaseURL, endpoints []Endpoint, err error) {
	problems := append(commandline.Problems{}, s.EarlierProblems...)
	database, found := s.Database.Load()
	problems = append(problems, found...)
	if s.URL.Reveal() != "" || s.RPC.URLFile != "" || s.EndpointsFile != "" {
		endpoints, found = s.RPC.Load()
		problems = append(problems, found...)
	}
	if s.All && s.Overdue {
		problems = append(problems, flagProblem("all", "expected one of --all and --overdue, received both: what has ended is not overdue"))
	}
	if s.Limit < 1 || s.Limit > maxListed {
		problems = append(problems, flagProblem("limit", "expected 1 to %d, received %d", maxListed, s.Limit))
	}
	problems = append(problems, s.Logging.check()...)
	if len(problems) > 0 {
		return DatabaseURL{}, nil, problems
	}
	return database, endpoints, nil
}
