package store

import (
	"context"
	"fmt"
	"time"
)

const (
	// retentionBatch is the number of rows that one transaction deletes. A batch takes tens of
	// milliseconds, and no writer waits for it, because no other statement writes finished rows.
	retentionBatch = 1000
	// retentionPause is the pause after each batch.
	retentionPause = 50 * time.Millisecond
)

const (
	// deleteFinishedSQL deletes submissions with their requests and attempts, and a swap's two
	// legs together once both have ended. The reservations of landed submissions stay for ever,
	// because a spent note stays spent.
	deleteFinishedSQL = `
WITH old AS MATERIALIZED (
	SELECT s.id FROM submissions s WHERE (s.state = 'failed' OR s.finalized) AND s.completed_at < $1 AND s.parent IS NULL
		AND NOT EXISTS (SELECT FROM submissions c WHERE c.parent = s.id AND (c.state IN ('pending', 'processing') OR c.state = 'completed' AND NOT c.finalized OR c.completed_at >= $1))
	ORDER BY s.completed_at LIMIT $2 FOR UPDATE SKIP LOCKED
), legs AS MATERIALIZED (
	SELECT id FROM old UNION ALL SELECT id FROM submissions WHERE parent = ANY (ARRAY(SELECT id FROM old))
), deleted_requests AS (
	DELETE FROM requests WHERE submission_id = ANY (ARRAY(SELECT id FROM old))
), deleted_attempts AS (
	DELETE FROM attempts WHERE submission_id = ANY (ARRAY(SELECT id FROM legs))
), deleted_swaps AS (
	DELETE FROM swaps WHERE id = ANY (ARRAY(SELECT id FROM legs))
)
DELETE FROM submissions WHERE id = ANY (ARRAY(SELECT id FROM legs))`

	deleteKeysSQL = `DELETE FROM idempotency_keys WHERE key_hash = ANY (ARRAY(SELECT key_hash FROM idempotency_keys
		WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED))`
)

// Deleted counts the rows that DeleteOld deleted.
type Deleted struct{ Submissions, IdempotencyKeys, SpendBuckets int64 }

// DeleteOld deletes submissions that finished longer than keep ago, with their requests and
// attempts. It also deletes expired idempotency keys and spend buckets, regardless of keep.
// Ages are measured by the database's clock, which also wrote the times. DeleteOld works in
// small transactions with pauses, can stop between any two of them, and can run concurrently
// with itself and everything else. With an error it also returns the counts so far.
func (s *Store) DeleteOld(ctx context.Context, keep time.Duration) (d Deleted, err error) {
	var now time.Time
	if err := s.Pool.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return d, unavailable(fmt.Errorf("read the database's clock: %w", err))
	}
	if d.Submissions, err = s.DeleteFinished(ctx, now.Add(-keep), retentionBatch); err != nil {
		return d, err
	}
	if d.IdempotencyKeys, err = s.deleteBatches(ctx, "idempotency keys", deleteKeysSQL, now.Add(-idempotencyWindow), retentionBatch); err != nil {
		return d, err
	}
	d.SpendBuckets, err = s.DeleteSpendBefore(ctx, now)
	return d, err
}

// DeleteFinished deletes the failed and finalized submissions that ended before the given
// time, with their requests and attempts, and at most batch of them in one transaction.
// Reservations of landed submissions stay.
func (s *Store) DeleteFinished(ctx context.Context, before time.Time, batch int) (int64, error) {
	return s.deleteBatches(ctx, "finished submissions", deleteFinishedSQL, before, batch)
}

// deleteBatches repeats one statement until it deletes less than a full batch. It pauses between
// batches, so that the disk can serve other work.
func (s *Store) deleteBatches(ctx context.Context, what, sql string, before time.Time, batch int) (n int64, err error) {
	for {
		tag, err := s.Pool.Exec(ctx, sql, before, batch)
		if err != nil {
			return n, unavailable(fmt.Errorf("delete old %s: %w", what, err))
		}
		n += tag.RowsAffected()
		if tag.RowsAffected() < int64(batch) {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-time.After(retentionPause):
		}
	}
}
