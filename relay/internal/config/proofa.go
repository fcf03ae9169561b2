package config

import "github.com/relaypool/relaypool/relay/commandline"

// ProofA has the flags of `relay proof-a`.
type ProofA struct {
	Database `embed:"" prefix:"database-"`

	Forget bool `help:"Forget the learnt encoding of proof A, for every verifying key. Relays notice within half a minute, and learn it again from the next finalized transaction."`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// Load checks the flags and reads the database's URL. Its error is commandline.Problems.
func (p ProofA) Load() (database DatabaseURL, err error) {
	problems := append(commandline.Problems{}, p.EarlierProblems...)
	database, found := p.Database.Load()
	problems = append(problems, found...)
	if len(problems) > 0 {
		return DatabaseURL{}, problems
	}
	return database, nil
}
