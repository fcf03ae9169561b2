package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/spendcap"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// healthTimeout bounds each check: /health must answer even when nothing else does.
	healthTimeout = 2 * time.Second
	// treeMaxAge is how old the tree that the check reads may be.
	treeMaxAge = 5 * time.Second
	// balanceMaxAge is the age at which a payer's balance counts as unknown.
	balanceMaxAge = 2 * time.Minute
	// maxIndexLag is how far the served commitments may be behind: clients
	// stop using them at about 50 leaves.
	maxIndexLag = 50
	// maxLag is how many slots an endpoint may be behind the others. A lag of two minutes
	// is more than a cache or load balancer explains.
	maxLag = 300
	// contradictionShownFor is how long an endpoint counts as unhealthy after it has
	// contradicted others, or itself.
	contradictionShownFor = time.Minute
	// maxDueAge is how long due work may wait for a process: on a busy pool, its root leaves
	// the root history soon after.
	maxDueAge = time.Minute
)

// Check implements httpapi.Health. Only a database fault sets the status down. All other
// faults set it degraded, because they pass by themselves or have their cause elsewhere.
func (a *App) Check(ctx context.Context) httpapi.HealthReport {
	checks := map[string]func(context.Context) error{
		"database": a.checkDatabase, "chain": a.checkChain, "rpc": a.checkEndpoints, "pool": a.checkPool,
		"fee_payers": a.checkPayers, "spending": a.checkSpending, "ledger": a.checkLedger,
		"commitments": a.checkIndex, "queue": a.checkQueue,
		"swaps": a.checkSwaps, "router": a.checkRouter,
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
	if !a.chainGate.open.Load() {
		return errors.New("the chain's genesis has not been read since the relay started")
	}
	if _, err := a.endpoints.Slot(ctx, onchain.Confirmed); err != nil {
		return fmt.Errorf("no RPC endpoint answers: %w", err)
	}
	return nil
}

func (a *App) checkEndpoints(context.Context) error {
	return endpointsProblem(a.endpoints.Status(), time.Now())
}

// endpointsProblem names every unhealthy endpoint, and why.
func endpointsProblem(all []chain.EndpointStatus, now time.Time) error {
	var problems []string
	for _, e := range all {
		switch {
		case e.Foreign:
			problems = append(problems, e.Name+" serves another chain and is not used: correct its URL")
		case e.Breaker != outbound.Closed:
			problems = append(problems, fmt.Sprintf("%s fails and is only probed: its last error, %s ago, was %s", e.Name, age(now, e.LastErrorAt), e.LastError))
		case e.LastError == onchain.KindContradiction && now.Sub(e.LastErrorAt) < contradictionShownFor:
			problems = append(problems, e.Name+" contradicts other endpoints, or itself, on the chain's block height: compare its getEpochInfo with an explorer's, and remove the endpoint that is wrong")
		case e.Lag > maxLag:
			problems = append(problems, fmt.Sprintf("%s is %d slots behind the others", e.Name, e.Lag))
		}
		if reported := contradictionOf(&e, now); reported != "" {
			problems = append(problems, reported)
		}
	}
	return joinProblems(problems)
}

// contradictionOf describes an endpoint's answers that others contradict. Two endpoints
// that contradict each other are described once.
func contradictionOf(e *chain.EndpointStatus, now time.Time) string {
	switch {
	case e.ContradictedAt.IsZero() || now.Sub(e.ContradictedAt) > contradictionShownFor || e.ContradictedBy != "" && e.ContradictedBy < e.Name:
		return ""
	case e.ContradictedBy == "":
		return fmt.Sprintf("%s reported a slot or a height that no other endpoint confirms, %s ago; such answers are not used: report it to its provider, or remove it", e.Name, age(now, e.ContradictedAt))
	default:
		return fmt.Sprintf("%s and %s contradict each other, the last time %s ago: one of them is wrong, and what they disagree on waits: compare with a third endpoint, and remove the one that is wrong",
			e.Name, e.ContradictedBy, age(now, e.ContradictedAt))
	}
}

// endpointsMessage returns the message of the check of healthy endpoints.
func endpointsMessage(all []chain.EndpointStatus) string {
	var readers []string
	for _, e := range all {
		if slices.Contains(e.Roles, chain.RoleRead) || slices.Contains(e.Roles, chain.RoleArchive) {
			readers = append(readers, e.Name)
		}
	}
	if len(readers) == 1 {
		return fmt.Sprintf("ok; landings, failures and finality rest on %s alone: add a second endpoint, of another provider, to confirm them", readers[0])
	}
	return "ok"
}

// age returns the time since then in whole seconds.
func age(now, then time.Time) time.Duration { return now.Sub(then).Round(time.Second) }

// joinProblems joins the problems; nil when there are none.
func joinProblems(parts []string) error {
	if len(parts) == 0 {
		return nil
	}
	return errors.New(strings.Join(parts, "; "))
}

func (a *App) checkPool(ctx context.Context) error {
	snap, err := a.poolReader.Tree(ctx, treeMaxAge)
	if r, ok := refusal.As(err); ok {
		return errors.New(r.Message)
	}
	if err != nil {
		return errors.New("the pool's tree account cannot be read")
	}
	if !snap.Checked {
		return errors.New("the tree account fails its self-check: the profile does not fit the program, and only simulation checks roots")
	}
	return a.checks.problem(ctx)
}

func (a *App) checkPayers(context.Context) error {
	return payersProblem(a.payers.Balances(), a.options.Config.FeePayerMinBalance)
}

// payersProblem names every payer that is not used, and how much it needs.
func payersProblem(all []feepayer.Balance, minimum uint64) error {
	var problems []string
	for _, b := range all {
		switch {
		case b.State == feepayer.StateUnknown:
			problems = append(problems, fmt.Sprintf("the balance of fee payer %s has not been read since the relay started", b.Payer))
		case b.State == feepayer.StateDry:
			problems = append(problems, fmt.Sprintf("fee payer %s holds %d lamports, expected at least %d: send it funds", b.Payer, b.Lamports, minimum))
		case b.State == feepayer.StateRefused:
			problems = append(problems, fmt.Sprintf("the chain refuses fee payer %s, which held %d lamports when it was last read: check the account", b.Payer, b.Lamports))
		case b.Age > balanceMaxAge:
			problems = append(problems, fmt.Sprintf("the balance of fee payer %s was last read %s ago", b.Payer, b.Age.Round(time.Second)))
		}
	}
	return joinProblems(problems)
}

func (a *App) checkSpending(ctx context.Context) error {
	usage, err := a.caps.Usage(ctx)
	if err != nil {
		return errors.New("the fleet's spending cannot be read, so the relay pays for nothing")
	}
	return spendingProblem(usage)
}

// spendingProblem names every cap that is reached, and its flag.
func spendingProblem(usage []spendcap.Usage) error {
	var reached []string
	for _, u := range usage {
		if u.Limit > 0 && (u.Reached || u.Spent >= u.Limit) {
			reached = append(reached, fmt.Sprintf("the spend cap %s is reached: %d of %d lamports; work waits until enough of it leaves the window, or until --spend-cap-%s is raised",
				u.Cap, u.Spent, u.Limit, capFlagSuffix(u.Cap)))
		}
	}
	return joinProblems(reached)
}

// capFlagSuffix is the end of a cap's flag: transfers_day is --spend-cap-transfers-day.
func capFlagSuffix(name string) string { return strings.ReplaceAll(name, "_", "-") }

func (a *App) checkQueue(context.Context) error {
	b, ok := a.backlog.get() //nolint:contextcheck // many callers share the reading, which has its own timeout
	if !ok {
		return errors.New("the queue cannot be read")
	}
	return queueProblem(b, a.submissions.Manager.PausedBy())
}

// queueProblem reports held submissions, and due ones that no process has claimed.
func queueProblem(b submission.Backlog, pausedBy string) error {
	var parts []string
	if pausedBy != "" {
		parts = append(parts, "this relay claims no work: "+pausedBy)
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(b.Held)) {
		// Waiting for a price is not a fault; checkSwaps reports a swap past its timeout.
		if n := b.Held[reason]; n > 0 && (reason == txmgr.HoldHistory || !slices.Contains(swap.Reasons(), reason)) {
			reasons = append(reasons, fmt.Sprintf("%d for %s", n, reason))
		}
	}
	if len(reasons) > 0 {
		parts = append(parts, "submissions are held: "+strings.Join(reasons, ", "))
	}
	if b.Held[txmgr.HoldSecondEndpoint] > 0 {
		parts = append(parts, "second_endpoint waits until a second RPC endpoint confirms the first, and new work continues: the check rpc names what does not answer or contradicts; add an endpoint, or remove the one that is dead or wrong from the configuration")
	}
	if b.OldestDue > maxDueAge {
		parts = append(parts, fmt.Sprintf("%d submissions are due and no relay claims them, the oldest for %s: run more relays", b.Due, b.OldestDue.Round(time.Second)))
	}
	return joinProblems(parts)
}
