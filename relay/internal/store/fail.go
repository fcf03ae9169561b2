package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// lockSQL is a separate statement, so that failSQL sees every attempt that was recorded
	// during the wait for the lock. It also locks a swap's second leg, whichever worker has
	// that leg's lease. It locks in the order of ids.
	lockSQL = `SELECT FROM submissions WHERE (id = $1 AND epoch = $2 AND lease_owner IS NOT DISTINCT FROM $3::uuid) OR parent = $1 ORDER BY id FOR UPDATE`

	// failSQL also fails a swap's second leg, whichever worker has that leg's lease. A first leg
	// that fails has a second leg only if it had landed on a fork that was abandoned later. If
	// the second leg is final, the first leg must have landed, and failSQL fails neither leg.
	failSQL = `
WITH failed AS (
	UPDATE submissions s SET state = 'failed', error_code = $4, error_message = $5, error_fields = $6,
		due_at = NULL, lease_owner = NULL, tries = 0, hold_reason = NULL, completed_at = now()
	WHERE s.id = $1 AND s.epoch = $2 AND s.lease_owner IS NOT DISTINCT FROM $3::uuid AND s.state || '' = 'processing'
		AND NOT EXISTS (SELECT FROM attempts a WHERE a.submission_id = s.id AND NOT a.dead)
		AND NOT EXISTS (SELECT FROM submissions c WHERE c.parent = s.id AND c.finalized)
	RETURNING s.id, s.pool, s.parent
), orphaned AS (
	UPDATE submissions c SET state = 'failed', error_code = $4, error_message = $5, error_fields = $6, epoch = c.epoch + 1,
		rolled_back = c.rolled_back OR c.state = 'completed', signature = NULL, slot = NULL,
		due_at = NULL, lease_owner = NULL, tries = 0, hold_reason = NULL, completed_at = now()
	FROM failed f WHERE c.parent = f.id AND c.state <> 'failed' RETURNING c.id
), ended AS (
	UPDATE swaps w SET ended = true WHERE w.id IN (SELECT id FROM failed UNION ALL SELECT id FROM orphaned)
), freed AS (
	DELETE FROM reservations v USING failed f, requests r, unnest(r.spends) AS n
	WHERE r.submission_id = f.id AND v.pool = f.pool AND v.nullifier = n AND v.submission_id = f.id
)
SELECT true, ` + notifyDone + ` FROM failed`
)

// Fail implements submission.Store.
func (s *Store) Fail(ctx context.Context, l txmgr.Lease, why *refusal.Refusal) error {
	fields, err := json.Marshal(why.Fields)
	if err != nil {
		return fmt.Errorf("encode failure: %w", err)
	}
	var failed bool
	b := &pgx.Batch{} // it commits as a whole
	b.Queue(lockSQL, l.ID, l.Epoch, l.Owner)
	b.Queue(failSQL, l.ID, l.Epoch, l.Owner, why.Code, why.Message, fields).Query(func(rows pgx.Rows) error {
		failed = rows.Next()
		rows.Close()
		return rows.Err()
	})
	if err := s.Pool.SendBatch(ctx, b).Close(); err != nil {
		return unavailable(fmt.Errorf("fail submission: %w", err))
	}
	if !failed {
		return txmgr.ErrLeaseLost
	}
	return nil
}
