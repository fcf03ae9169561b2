package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/poolcheck"
)

// checksMaxAge is how long /health reuses one reading of the pool's accounts other than the
// tree, because these hardly change.
const checksMaxAge = 30 * time.Second

// poolChecks are the operator's checks of the pool, for /health.
type poolChecks struct {
	reader poolcheck.Reader
	target poolcheck.Target

	mu   sync.Mutex
	last error
	at   time.Time
}

// problem returns what is wrong with the pool; nil when no fault is known. Another check
// reports a chain that does not answer.
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
	return p.last // an unknown result keeps the last known state
}
