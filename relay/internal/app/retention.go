package app

import (
	"context"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/ledger"
)

const (
	// ledgerBatch is how many rows of the ledger one batch deletes. ledgerPause is the pause
	// after each batch.
	ledgerBatch = 1000
	ledgerPause = 50 * time.Millisecond
	// ledgerGrace is the longest time for which submissions are kept beyond the configured
	// retention, if the ledger has not read their transactions. Without the submissions, the
	// ledger would count the transactions as unknown, which raises an alert.
	ledgerGrace = 7 * 24 * time.Hour
)

// deleteOld deletes rows that are no longer needed.
func (a *App) deleteOld(ctx context.Context) error {
	snapshot, err := a.store.Ledger().Read(ctx, time.Now(), time.Now())
	if err != nil {
		return err
	}
	keep := submissionRetention(a.options.Config.Retention, a.payers.Keys(), snapshot.Cursors, time.Now())
	deleted, err := a.store.DeleteOld(ctx, keep)
	a.metrics.RowsDeleted("submissions", deleted.Submissions)
	a.metrics.RowsDeleted("idempotency_keys", deleted.IdempotencyKeys)
	a.metrics.RowsDeleted("spend_buckets", deleted.SpendBuckets)
	if err != nil {
		return err
	}
	return a.deleteLedger(ctx, time.Now().Add(-a.options.Config.Retention))
}

// submissionRetention returns how long finished submissions are kept: as configured, plus the
// lag of the ledger up to ledgerGrace.
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

// deleteLedger deletes the ledger's rows of transactions that landed before the given time. It
// keeps the daily sums.
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
