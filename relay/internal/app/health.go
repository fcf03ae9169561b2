package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/openapi"
)

// healthTimeout bounds each check: /health must answer even when nothing else does.
const healthTimeout = 2 * time.Second

// Check implements httpapi.Health. Only a database fault sets the status to down. All other
// faults set it to degraded, because they end by themselves or have their cause elsewhere.
func (a *App) Check(ctx context.Context) httpapi.HealthReport {
	checks := map[string]func(context.Context) error{
		"database": a.checkDatabase, "chain": a.checkChain, "finality": a.checkFinality, "rpc": a.checkEndpoints, "pool": a.checkPool,
		"fee_payers": a.checkPayers, "spending": a.checkSpending, "ledger": a.checkLedger,
		"commitments": a.checkIndex, "queue": a.checkQueue,
		"swaps": a.checkSwaps, "router": a.checkRouter, "api_keys": a.apiKeys.problem,
	}
	r := httpapi.HealthReport{Status: openapi.HealthStatusOk, Checks: map[string]openapi.HealthCheck{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, check := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, healthTimeout)
			defer cancel()
			err := check(ctx)
			mu.Lock()
			defer mu.Unlock()
			r.Checks[name] = healthCheck(name, err)
			if name == "rpc" && err == nil {
				message := endpointsMessage(a.endpoints.Status())
				r.Checks[name] = openapi.HealthCheck{Status: openapi.HealthStatusOk, Message: &message}
			}
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

// healthCheck returns the report's entry for one check.
func healthCheck(name string, err error) openapi.HealthCheck {
	switch {
	case err == nil:
		message := "ok"
		return openapi.HealthCheck{Status: openapi.HealthStatusOk, Message: &message}
	case name == "database":
		message := err.Error()
		return openapi.HealthCheck{Status: openapi.HealthStatusDown, Message: &message}
	default:
		message := err.Error()
		return openapi.HealthCheck{Status: openapi.HealthStatusDegraded, Message: &message}
	}
}

func (a *App) checkDatabase(ctx context.Context) error {
	if err := a.db.Ping(ctx); err != nil {
		return errors.New("the database does not answer")
	}
	return nil
}

func (a *App) checkChain(ctx context.Context) error {
	if !a.genesisGate.open.Load() {
		return errors.New("the chain's genesis has not been read since the relay started")
	}
	if _, err := a.endpoints.Slot(ctx, onchain.Confirmed); err != nil {
		return fmt.Errorf("no RPC endpoint answers: %w", err)
	}
	return nil
}

// age returns how long ago an event was, in whole seconds.
func age(now, event time.Time) time.Duration { return now.Sub(event).Round(time.Second) }

// joinProblems joins the problems into one error; nil when there are none.
func joinProblems(parts []string) error {
	if len(parts) == 0 {
		return nil
	}
	return errors.New(strings.Join(parts, "; "))
}
