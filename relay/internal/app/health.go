package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// healthPatience bounds each check: /health must answer when nothing else does.
	healthPatience = 2 * time.Second
	// healthTreeAge is how old the tree may be for the chain to count as answering.
	healthTreeAge = 5 * time.Second
	// staleBalance is the age at which the payer's balance counts as unknown.
	staleBalance = 2 * time.Minute
	// indexLagAllowed is how far the served commitments may be behind: clients
	// stop using them at about 50 leaves.
	indexLagAllowed = 50
	// backlogAge is how long the gauges keep one count of the backlog.
	backlogAge = 5 * time.Second
)

// Check implements httpapi.Health. Only the database makes the relay down;
// everything else waits or is somebody else's, and degrades it.
func (a *App) Check(ctx context.Context) httpapi.HealthReport {
	checks := map[string]func(context.Context) error{
		"database": a.checkDatabase, "chain": a.checkChain, "pool": a.checkPool, "fee_payer": a.checkPayer, "commitments": a.checkIndex,
	}
	r := httpapi.HealthReport{Status: openapi.HealthStatusOk, Checks: map[string]openapi.HealthCheck{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, check := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, healthPatience)
			defer cancel()
			err := check(ctx)
			mu.Lock()
			defer mu.Unlock()
			r.Checks[name] = healthCheck(name, err)
			switch {
			case err == nil:
			case name == "database":
				r.Status = openapi.HealthStatusDown
			case r.Status == openapi.HealthStatusOk:
				r.Status = openapi.HealthStatusDegraded
			}
		})
	}
	wg.Wait()
	return r
}

// healthCheck is one part's entry of the report.
func healthCheck(name string, err error) openapi.HealthCheck {
	switch {
	case err == nil:
		return openapi.HealthCheck{Status: openapi.HealthStatusOk, Message: "ok"}
	case name == "database":
		return openapi.HealthCheck{Status: openapi.HealthStatusDown, Message: err.Error()}
	default:
		return openapi.HealthCheck{Status: openapi.HealthStatusDegraded, Message: err.Error()}
	}
}

func (a *App) checkDatabase(ctx context.Context) error {
	if err := a.db.Ping(ctx); err != nil {
		return errors.New("the database does not answer")
	}
	return nil
}

func (a *App) checkChain(ctx context.Context) error {
	if !a.gate.open.Load() {
		return errors.New("the chain's genesis has not been read since the relay started")
	}
	if _, err := a.rpc.Slot(ctx, ledger.Confirmed); err != nil {
		return fmt.Errorf("the RPC endpoint does not answer: %w", err)
	}
	return nil
}

func (a *App) checkPool(ctx context.Context) error {
	snap, err := a.pool.Tree(ctx, healthTreeAge)
	if r, ok := refusal.As(err); ok {
		return errors.New(r.Message)
	}
	if err != nil {
		return errors.New("the pool's tree account cannot be read")
	}
	if !snap.Checked {
		return errors.New("the tree account fails its self-check: the profile does not fit the program, and roots are judged by simulation only")
	}
	return nil
}

func (a *App) checkPayer(context.Context) error {
	b, ok := a.payer.Balance()
	switch {
	case !ok:
		return errors.New("the fee payer's balance has not been read since the relay started")
	case time.Since(b.At) > staleBalance:
		return fmt.Errorf("the fee payer's balance was last read %s ago", time.Since(b.At).Round(time.Second))
	case b.Lamports < a.o.Config.FeePayerMinBalance:
		return fmt.Errorf("the fee payer holds %d lamports, expected at least %d: send it funds", b.Lamports, a.o.Config.FeePayerMinBalance)
	}
	return nil
}

// readGauges registers the gauges that are read when they are scraped.
func (a *App) readGauges() {
	backlog := newBacklogCache(a.desk)
	a.metrics.Read(contract.MetricWatching, func() (float64, bool) { return float64(a.engine.Watching()), true })
	a.metrics.Read(contract.MetricBacklog, func() (float64, bool) { b, ok := backlog.get(); return float64(b.Due), ok })
	a.metrics.Read(contract.MetricBacklogAge, func() (float64, bool) { b, ok := backlog.get(); return b.OldestDue.Seconds(), ok })
	a.metrics.ReadEach(contract.MetricHeld, func(sample telemetry.Sample) {
		b, _ := backlog.get() // none is held by a reason that is not known
		for reason, n := range b.Held {
			sample(float64(n), reason)
		}
	})
	a.metrics.ReadEach(contract.MetricOpen, func(sample telemetry.Sample) {
		if b, ok := backlog.get(); ok {
			sample(float64(b.Pending), string(submission.Pending))
			sample(float64(b.Processing), string(submission.Processing))
		}
	})
	a.readIndexGauges()
}

// backlogCache keeps one count for the gauges of one scrape, and for scrapes
// that follow each other closely.
type backlogCache struct {
	desk *submission.Desk
	mu   sync.Mutex
	last submission.Backlog
	ok   bool
	at   time.Time
}

func newBacklogCache(d *submission.Desk) *backlogCache { return &backlogCache{desk: d} }

func (c *backlogCache) get() (submission.Backlog, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > backlogAge {
		ctx, cancel := context.WithTimeout(context.Background(), healthPatience)
		defer cancel()
		b, err := c.desk.Backlog(ctx)
		c.last, c.ok, c.at = b, err == nil, time.Now()
	}
	return c.last, c.ok
}

func (a *App) treeChanged(s ledger.Snapshot, selfCheck error) {
	a.metrics.Tree(s.Tree.NextIndex, selfCheck)
	if selfCheck != nil {
		a.log.Error("Read a tree account that contradicts itself", "error", selfCheck)
	}
}
