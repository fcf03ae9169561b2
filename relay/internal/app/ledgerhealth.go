package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/telemetry"
)

const (
	// ledgerMaxAge is how long /health and the gauges reuse one reading of the ledger.
	ledgerMaxAge = 3 * time.Second
	// ledgerDays is how long /health reports an unknown transaction: a whole week,
	// to outlast a weekend.
	ledgerDays = 7
	// ledgerMaxLag is how long the ledger may be behind the chain: twice the time for which the
	// reconciler waits for missing history.
	ledgerMaxLag = 20 * time.Minute
)

// ledgerEvents counts the entries that the reconciler adds. It does not count gaps, because the
// ledger stores them and every process reports them from there.
type ledgerEvents struct{ metrics *telemetry.Metrics }

// EntryAdded implements ledger.Observer.
func (e ledgerEvents) EntryAdded(kind ledger.Kind, _ ledger.Amounts) {
	e.metrics.LedgerEntryAdded(string(kind))
}

// GapSkipped implements ledger.Observer.
func (ledgerEvents) GapSkipped() {}

// accountingCache caches one reading of the ledger for all gauges of a scrape and for
// /health.
type accountingCache struct {
	ledger *store.Ledger
	mu     sync.Mutex
	last   *ledger.Snapshot // nil when it could not be read
	at     time.Time        // of the last try to read it
	// incompleteSince is when a payer's ledger was first found incomplete. It has only the payers
	// whose ledger was never complete.
	incompleteSince map[solana.PublicKey]time.Time
}

func (c *accountingCache) get() *ledger.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.at) > ledgerMaxAge {
		ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
		defer cancel()
		read, err := c.ledger.Read(ctx, now.AddDate(0, 0, 1-ledgerDays), now)
		if err != nil {
			read = nil // then the gauges have no sample
		}
		c.last, c.at = read, time.Now()
	}
	return c.last
}

func (a *App) checkLedger(context.Context) error {
	l := a.accounting.get() //nolint:contextcheck // many callers share the reading, which has its own timeout
	if l == nil {
		return errors.New("the ledger of the fee payers cannot be read")
	}
	now := time.Now()
	return ledgerProblem(l, a.accounting.lags(l, a.payers.Balances(), now), now, a.started)
}

// ledgerProblem reports unknown transactions, lamports that are not accounted for, and lags. It
// reports a lag only if the relay has run long enough to catch up. Former payers have no lag,
// because the relay no longer reads their history.
func ledgerProblem(l *ledger.Snapshot, lags []ledgerLag, now, started time.Time) error {
	var parts []string
	var unknown uint64
	for _, s := range l.Days {
		if s.Kind == ledger.KindUnknown {
			unknown += s.Transactions
		}
	}
	if unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d transactions of the last %d days were signed by a fee payer and are not in the database: somebody else may have the key; run relay ledger", unknown, ledgerDays))
	}
	for _, p := range l.Statement(nil).Payers {
		if unexplained := p.Unexplained + p.Other; unexplained != 0 {
			parts = append(parts, fmt.Sprintf("%d lamports of fee payer %s are not accounted for: run relay ledger", unexplained, p.Payer))
		}
	}
	for _, payerLag := range lags {
		if lag := now.Sub(payerLag.Since); lag > ledgerMaxLag && now.Sub(started) > ledgerMaxLag {
			parts = append(parts, fmt.Sprintf("the ledger of fee payer %s is behind the chain: it was %s", payerLag.Payer, completeness(payerLag.Checked, lag)))
		}
	}
	return joinProblems(parts)
}

// ledgerLag is how far a payer's ledger is behind the chain. Checked is when the ledger was last
// complete; zero if it never was. Since is Checked or, if that is zero, the time when the
// incomplete ledger was first observed.
type ledgerLag struct {
	Payer          solana.PublicKey
	Since, Checked time.Time
}

// lags returns the lag of each payer that has a ledger, or that has funds and therefore a
// history. It includes payers whose ledger was never complete: if an endpoint lacks the history
// of a new payer, the payer's ledger never starts, and nothing else would report this.
func (c *accountingCache) lags(l *ledger.Snapshot, balances []feepayer.Balance, now time.Time) []ledgerLag {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []ledgerLag
	incompleteSince := map[solana.PublicKey]time.Time{}
	for j := range balances {
		payer := balances[j].Payer
		i := slices.IndexFunc(l.Cursors, func(cursor ledger.Cursor) bool { return cursor.Payer == payer })
		switch {
		case i >= 0 && !l.Cursors[i].CheckedAt.IsZero():
			all = append(all, ledgerLag{payer, l.Cursors[i].CheckedAt, l.Cursors[i].CheckedAt})
		case i >= 0 || balances[j].Lamports > 0:
			incompleteSince[payer] = now
			if since, ok := c.incompleteSince[payer]; ok {
				incompleteSince[payer] = since
			}
			all = append(all, ledgerLag{Payer: payer, Since: incompleteSince[payer]})
		}
	}
	c.incompleteSince = incompleteSince
	return all
}

func completeness(at time.Time, lag time.Duration) string {
	if at.IsZero() {
		return "never complete"
	}
	return fmt.Sprintf("complete %s ago", lag.Round(time.Second))
}
