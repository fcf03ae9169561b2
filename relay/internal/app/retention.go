package app

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

const (
	// ledgerBatch is how many rows of the ledger one batch deletes, and ledgerPause
	// the pause after each.
	ledgerBatch = 1000
	ledgerPause = 50 * time.Millisecond
	// ledgerGrace is how much longer than configured submissions are kept whose
	// transactions the ledger has not read. Without their rows the transactions would be
	// unknown to the ledger, which raises an alert.
	ledgerGrace = 7 * 24 * time.Hour
)

// deleteOld deletes rows that are no longer needed.
func (a *App) deleteOld(ctx context.Context) error {
	read, err := a.store.Ledger().Read(ctx, time.Now(), time.Now())
	if err != nil {
		return err
	}
	keep := submissionRetention(a.options.Config.Retention, a.payers.Keys(), read.Cursors, time.Now())
	deleted, err := a.store.DeleteOld(ctx, keep)
	a.metrics.RowsDeleted("submissions", deleted.Submissions)
	a.metrics.RowsDeleted("idempotency_keys", deleted.IdempotencyKeys)
	a.metrics.RowsDeleted("spend_buckets", deleted.SpendBuckets)
	if err != nil {
		return err
	}
	return a.deleteLedger(ctx, time.Now().Add(-a.options.Config.Retention))
}

// submissionRetention is how long finished submissions are kept: longer than configured when the
// ledger is behind, but with a limit.
func submissionRetention(retention time.Duration, payers []solana.PublicKey, cursors []ledger.Cursor, now time.Time) time.Duration {
	checked := map[solana.PublicKey]time.Time{}
	for i := range cursors {
		checked[cursors[i].Payer] = cursors[i].CheckedAt
	}
	oldest := now
	for _, payer := range payers {
		if at := checked[payer]; at.Before(oldest) { // the zero time means never read
			oldest = at
		}
	}
	return retention + min(ledgerGrace, now.Sub(oldest))
}

// deleteLedger deletes the ledger's rows from before a time; the sums of their days are
// kept.
func (a *App) deleteLedger(ctx context.Context, before time.Time) error {
	for {
		n, err := a.store.Ledger().DeleteBefore(ctx, before, ledgerBatch)
		if err != nil {
			return err
		}
		a.metrics.RowsDeleted("ledger", n)
		if n < ledgerBatch {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(ledgerPause):
		}
	}
}
