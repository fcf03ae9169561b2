package config

import (
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
)

// Ledger has the flags of `relay ledger`.
type Ledger struct {
	Database `embed:"" prefix:"database-"`
	RPC      `embed:"" prefix:"rpc-"`
	Logging  `embed:"" prefix:"log-"`

	From string `placeholder:"DATE" help:"First day, UTC, such as 2026-11-21. Empty means the ledger's first."`
	To   string `placeholder:"DATE" help:"Last day, UTC, included. Empty means today."`
	JSON bool   `name:"json" help:"Print JSON instead of tables."`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// LedgerRequest is the input of `relay ledger`.
type LedgerRequest struct {
	DatabaseURL DatabaseURL
	// Endpoints are the endpoints to read balances from. Without any, the command does not
	// read the chain.
	Endpoints []Endpoint
	// From is the start of the first day in UTC; zero means the ledger's first day. Until is
	// the end of the last day; zero means now.
	From, Until time.Time
}

// Load checks the flags and reads the files. Its error is commandline.Problems.
func (l Ledger) Load() (*LedgerRequest, error) {
	problems := append(commandline.Problems{}, l.EarlierProblems...)
	database, found := l.Database.Load()
	problems = append(problems, found...)
	p := &LedgerRequest{DatabaseURL: database}
	if l.URL.Reveal() != "" || l.RPC.URLFile != "" || l.EndpointsFile != "" {
		endpoints, found := l.RPC.Load()
		p.Endpoints = endpoints
		problems = append(problems, found...)
	}
	day := func(flag, text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			problems = append(problems, flagProblem(flag, "expected a day such as 2026-11-21, received %d characters that are not a day", len(text)))
		}
		return t
	}
	p.From, p.Until = day("from", l.From), day("to", l.To)
	if !p.Until.IsZero() {
		p.Until = p.Until.AddDate(0, 0, 1)
		if !p.From.Before(p.Until) {
			problems = append(problems, flagProblem("from", "expected a day not after --to, received a later one"))
		}
	}
	problems = append(problems, l.Logging.check()...)
	if len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}
