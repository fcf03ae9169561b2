package config

import "github.com/relaypool/relaypool/relay/commandline"

// ProofA holds the flags of relay proof-a.
type ProofA struct {
	Database `embed:"" prefix:"database-"`

	Forget bool `help:"Forget what was learnt, of every verifying key. Relays ask within half a minute, and learn it anew from the next transaction that is finalized."`

	// EarlierProblems are problems found before Load, which adds its own.
	EarlierProblems []error `kong:"-"`
}

// Load checks the flags and reads the database's URL. Its error is commandline.Problems.
func (p ProofA) Load() (database Secret, err error) {
	problems := append(commandline.Problems{}, p.EarlierProblems...)
	if database, err = p.Database.Load(); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return Secret{}, problems
	}
	return database, nil
}
