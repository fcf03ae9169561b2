package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// Complete implements submission.Store.
func (s *Store) Complete(ctx context.Context, l submission.Lease, o submission.Outcome) error {
	var root []byte
	if o.Root != nil {
		root = o.Root[:]
	}
	return s.inTx(ctx, func(tx pgx.Tx) error {
		err := s.write(ctx, tx, l, `UPDATE submissions SET state = 'completed', signature = $3, slot = $4,
			leaf_indices = $5, root = $6, rolled_back = false, tries = 0, due_at = now(), completed_at = COALESCE(completed_at, now())
			WHERE id = $1 AND epoch = $2 AND state = 'processing'`,
			o.Signature[:], int64(o.Slot), leafIndices(o), root) //nolint:gosec // slots are below 2^63
		if err != nil {
			return err
		}
		return notifyDone(ctx, tx, l)
	})
}

func leafIndices(o submission.Outcome) []int64 {
	out := make([]int64, len(o.LeafIndices))
	for i, x := range o.LeafIndices {
		out[i] = int64(x) //nolint:gosec // leaf indices are below 2^32
	}
	return out
}

// Finalize implements submission.Store.
func (s *Store) Finalize(ctx context.Context, l submission.Lease, o submission.Outcome, pin submission.SignPin) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		err := s.write(ctx, tx, l, `UPDATE submissions SET finalized = true, due_at = NULL, lease_owner = NULL, lease_until = NULL,
			slot = $3, leaf_indices = CASE WHEN cardinality($4::bigint[]) > 0 THEN $4 ELSE leaf_indices END
			WHERE id = $1 AND epoch = $2 AND state = 'completed'`, int64(o.Slot), leafIndices(o)) //nolint:gosec // slots are below 2^63
		if err != nil {
			return err
		}
		return pinSign(ctx, tx, pin)
	})
}

// Reopen implements submission.Store.
func (s *Store) Reopen(ctx context.Context, l submission.Lease) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		return s.write(ctx, tx, l, `UPDATE submissions SET state = 'processing', rolled_back = true,
			signature = NULL, slot = NULL, leaf_indices = NULL, root = NULL, completed_at = NULL
			WHERE id = $1 AND epoch = $2 AND state = 'completed'`)
	})
}

// Fail implements submission.Store.
func (s *Store) Fail(ctx context.Context, l submission.Lease, why *refusal.Refusal) error {
	fields, err := json.Marshal(why.Fields)
	if err != nil {
		return fmt.Errorf("encode failure: %w", err)
	}
	return s.inTx(ctx, func(tx pgx.Tx) error {
		err := s.write(ctx, tx, l, `UPDATE submissions SET state = 'failed', error_code = $3, error_message = $4, error_fields = $5,
			due_at = NULL, lease_owner = NULL, lease_until = NULL, completed_at = now()
			WHERE id = $1 AND epoch = $2 AND state = 'processing'
			AND NOT EXISTS (SELECT FROM attempts WHERE submission_id = $1 AND NOT dead)`,
			why.Code, why.Message, fields)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM reservations WHERE submission_id = $1`, l.ID); err != nil {
			return fmt.Errorf("free nullifiers: %w", err)
		}
		return notifyDone(ctx, tx, l)
	})
}

// Backlog implements submission.Store. The counts read the index of open rows only.
func (s *Store) Backlog(ctx context.Context) (submission.Backlog, error) {
	var b submission.Backlog
	var age float64
	err := s.Pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'processing'),
			COALESCE(EXTRACT(epoch FROM now() - min(created_at) FILTER (WHERE state = 'pending')), 0)::float8
		FROM submissions WHERE state IN ('pending', 'processing')`).Scan(&b.Pending, &b.Processing, &age)
	if err != nil {
		return b, unavailable(fmt.Errorf("count backlog: %w", err))
	}
	b.OldestAge = time.Duration(age * float64(time.Second))
	rows, err := s.Pool.Query(ctx, `SELECT id FROM river_job
		WHERE kind = $1 AND state IN ('available', 'running', 'retryable', 'scheduled') ORDER BY id LIMIT 100`, wakeUp{}.Kind())
	if err != nil {
		return b, unavailable(fmt.Errorf("list queued jobs: %w", err))
	}
	b.QueuedJobs, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	return b, unavailable(err)
}
