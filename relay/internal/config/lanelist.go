package config

import (
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
)

// LaneList has the flags of `relay lanes`.
type LaneList struct {
	Database `embed:"" prefix:"database-"`

	Since time.Duration `default:"24h" placeholder:"DURATION" help:"Count the transactions that were signed since so long ago. Those of submissions that retention deleted are missing."`
	JSON  bool          `name:"json" help:"Print JSON instead of a table."`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// Load checks the flags and reads the database's URL. Its error is commandline.Problems.
func (l LaneList) Load() (database DatabaseURL, err error) {
	problems := append(commandline.Problems{}, l.EarlierProblems...)
	database, found := l.Database.Load()
	problems = append(problems, found...)
	if l.Since <= 0 {
		problems = append(problems, flagProblem("since", "expected a duration above zero, received %s", l.Since))
	}
	if len(problems) > 0 {
		return DatabaseURL{}, problems
	}
	return database, nil
}
