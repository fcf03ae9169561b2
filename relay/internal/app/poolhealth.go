package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/refusal"
)

// checksMaxAge is how long /health reuses the result of the pool checks: the accounts that
// they read seldom change.
const checksMaxAge = 30 * time.Second

// treeMaxAge is the age up to which checkPool uses a tree that was read before.
const treeMaxAge = 5 * time.Second

func (a *App) checkPool(ctx context.Context) error {
	snap, err := a.poolReader.Tree(ctx, treeMaxAge)
	if r, ok := refusal.As(err); ok {
		return errors.New(r.Message)
	}
	if err != nil {
		return errors.New("the pool's tree account cannot be read")
	}
	if !snap.Checked {
		return errors.New("the tree account fails its self-check: the profile does not fit the program, so roots are checked only by simulation")
	}
	return a.checks.problem(ctx)
}

// poolChecks runs the pool checks for /health. The Kubernetes operator runs the same checks.
type poolChecks struct {
	reader poolcheck.Reader
	target poolcheck.Target

	mu   sync.Mutex
	last error
	at   time.Time
}

// problem returns what is wrong with the pool; nil when no problem is known. An unreachable
// chain is reported by another check.
func (p *poolChecks) problem(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() && time.Since(p.at) < checksMaxAge {
		return p.last
	}
	report := poolcheck.Evaluate(poolcheck.Observe(ctx, p.reader, p.target))
	switch state, _, _ := report.Summary(); state {
	case poolcheck.OK:
		p.last, p.at = nil, time.Now()
	case poolcheck.Failed:
		p.last, p.at = errors.New(report.Message()), time.Now()
	}
	return p.last // if the new result is unknown, the last known one stays valid
}
