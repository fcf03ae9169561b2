package store

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	keyedSQL = `SELECT submission_id, content_hash FROM idempotency_keys
		WHERE key_hash = $1 AND created_at >= now() - $2::interval`
	reservedSQL = `SELECT v.nullifier, s.id, s.content_hash FROM reservations v
		LEFT JOIN submissions s ON s.id = v.submission_id
		WHERE v.pool = $1 AND v.nullifier = ANY($2::bytea[])`
)

// reservation is a reserved nullifier with the submission that reserved it. ID and ContentHash
// are nil if retention has deleted that submission: the reservation of a landed submission stays.
type reservation struct {
	Nullifier   []byte
	ID          *uuid.UUID
	ContentHash []byte
}

// FindRepeated implements submission.Store.
func (s *Store) FindRepeated(ctx context.Context, sub *submission.Submission, keyHash []byte) (*submission.Submission, error) {
	key, reserved, err := s.readKeyAndReservations(ctx, sub, keyHash)
	if err != nil {
		return nil, err
	}
	hash := submission.ContentHash(sub.Call)
	if key != nil {
		earlier, err := s.findByKey(ctx, *key, hash)
		if err != nil || earlier != nil {
			return earlier, err
		}
	}
	for _, r := range reserved {
		if r.ID != nil && bytes.Equal(r.ContentHash, hash[:]) {
			earlier, err := s.getIfStored(ctx, *r.ID)
			if earlier != nil {
				// The key is not the same, so anybody may have sent the new request.
				earlier.Repeated = true
			}
			return earlier, err
		}
	}
	return nil, refuseReserved(sub, reserved)
}

// readKeyAndReservations reads the key's submission and the reserved nullifiers in one round trip.
func (s *Store) readKeyAndReservations(ctx context.Context, sub *submission.Submission, keyHash []byte) (*keyedSubmission, []reservation, error) {
	var key *keyedSubmission
	var reserved []reservation
	b := &pgx.Batch{}
	if keyHash != nil {
		b.Queue(keyedSQL, keyHash, idempotencyWindow).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[keyedSubmission])
			if len(found) > 0 {
				key = &found[0]
			}
			return err
		})
	}
	b.Queue(reservedSQL, sub.Pool.Bytes(), byteSlices(nullifiersOf(sub))).Query(func(rows pgx.Rows) (err error) {
		reserved, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reservation])
		return err
	})
	if err := s.Pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, nil, unavailable(fmt.Errorf("find an earlier submission: %w", err))
	}
	return key, reserved, nil
}

// getIfStored reads a submission, or returns nil if it was deleted after it had been found.
func (s *Store) getIfStored(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	sub, err := s.Get(ctx, id)
	if r, ok := refusal.As(err); ok && r.Code == refusal.NotFound {
		return nil, nil //nolint:nilnil // nil is "deleted", as documented
	}
	return sub, err
}
