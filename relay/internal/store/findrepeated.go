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
	replaySQL = `SELECT submission_id, content_hash FROM idempotency_keys
		WHERE key_hash = $1 AND created_at >= now() - $2::interval`
	reservedSQL = `SELECT v.nullifier, s.id, s.content_hash FROM reservations v
		LEFT JOIN submissions s ON s.id = v.submission_id
		WHERE v.pool = $1 AND v.nullifier = ANY($2::bytea[])`
)

// earlier is the submission of an idempotency key.
type earlier struct {
	ID          uuid.UUID
	ContentHash []byte
}

// reservation is a reserved nullifier. Its submission is nil when it landed so long ago
// that it is deleted.
type reservation struct {
	Nullifier   []byte
	ID          *uuid.UUID
	ContentHash []byte
}

// FindRepeated implements submission.Store.
func (s *Store) FindRepeated(ctx context.Context, sub *submission.Submission, keyHash []byte) (*submission.Submission, error) {
	key, taken, err := s.findRepeated(ctx, sub, keyHash)
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
	for _, r := range taken {
		if r.ID != nil && bytes.Equal(r.ContentHash, hash[:]) {
			earlier, err := s.sameContent(ctx, *r.ID)
			if earlier != nil {
				// The request has no known key, so its sender may be anybody.
				earlier.Repeated = true
			}
			return earlier, err
		}
	}
	if len(taken) > 0 {
		index := 0
		if bytes.Equal(taken[0].Nullifier, sub.Call.Inputs.Nullifiers[1][:]) {
			index = 1
		}
		return nil, refusal.New(refusal.NullifierReserved,
			"nullifier %d belongs to another submission of this relay that is under way or has landed: its note cannot be spent twice; choose other notes, or wait for that submission to fail", index).
			With("nullifier_index", index)
	}
	return nil, nil //nolint:nilnil // nil is "new", as documented
}

// findRepeated reads key and nullifiers in one round trip.
func (s *Store) findRepeated(ctx context.Context, sub *submission.Submission, keyHash []byte) (*earlier, []reservation, error) {
	var key *earlier
	var taken []reservation
	b := &pgx.Batch{}
	if keyHash != nil {
		b.Queue(replaySQL, keyHash, idempotencyWindow).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[earlier])
			if len(found) > 0 {
				key = &found[0]
			}
			return err
		})
	}
	b.Queue(reservedSQL, sub.Pool.Bytes(), byteSlices(nullifiersOf(sub))).Query(func(rows pgx.Rows) (err error) {
		taken, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reservation])
		return err
	})
	if err := s.Pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, nil, unavailable(fmt.Errorf("find an earlier submission: %w", err))
	}
	return key, taken, nil
}

// findByKey returns the key's submission, if the content is the same.
func (s *Store) findByKey(ctx context.Context, key earlier, hash [32]byte) (*submission.Submission, error) {
	if !bytes.Equal(key.ContentHash, hash[:]) {
		return nil, refusal.New(refusal.IdempotencyKeyReused,
			"this Idempotency-Key was used within 24 hours for other public inputs or another destination: send a new key with new content")
	}
	return s.sameContent(ctx, key.ID)
}

// sameContent reads a submission that may have been deleted since it was found.
func (s *Store) sameContent(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	sub, err := s.Get(ctx, id)
	if r, ok := refusal.As(err); ok && r.Code == refusal.NotFound {
		return nil, nil //nolint:nilnil // nil is "new", as documented
	}
	return sub, err
}
