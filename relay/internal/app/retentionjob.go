package app

import (
	"context"
	"time"
)

const (
	// retentionInterval is the interval at which old rows are deleted. At the highest load these
	// are a few hundred thousand rows, whose deletion takes a minute or two.
	retentionInterval = 10 * time.Minute
	// ledgerBatch is how many rows of the ledger one batch deletes. ledgerPause is the pause
	// after each batch.
	ledgerBatch = 1000
	ledgerPause = 50 * time.Millisecond
	// requestCountsKept is how long counts of clients' requests are kept at least; a limit looks back
	// for two minutes.
	requestCountsKept = 5 * time.Minute
)

// deleteOld deletes rows that are no longer needed.
func (a *App) deleteOld(ctx context.Context) error {
	counts, err := a.store.DeleteRequestCountsBefore(ctx, time.Now().Add(-requestCountsKept))
	a.metrics.RowsDeleted("request_counts", counts)
	if err != nil {
		return err
	}
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
