package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// idempotencyWindow is how long an Idempotency-Key is kept.
const idempotencyWindow = 24 * time.Hour

// deleteStaleKey deletes the key if it is older than the window, or if its submission is
// deleted, so that the key can be used again.
func (s *Store) deleteStaleKey(ctx context.Context, keyHash []byte) error {
	if keyHash == nil {
		return nil
	}
	_, err := s.Pool.Exec(ctx, `DELETE FROM idempotency_keys k WHERE k.key_hash = $1
		AND (k.created_at < now() - $2::interval OR NOT EXISTS (SELECT FROM submissions s WHERE s.id = k.submission_id))`, keyHash, idempotencyWindow)
	if err != nil {
		return unavailable(fmt.Errorf("delete an old idempotency key: %w", err))
	}
	return nil
}

// keyedSubmission is the submission of an idempotency key.
type keyedSubmission struct {
	ID          uuid.UUID
	ContentHash []byte
}

// findByKey returns the key's submission, if the content is the same.
func (s *Store) findByKey(ctx context.Context, key keyedSubmission, hash [32]byte) (*submission.Submission, error) {
	if !bytes.Equal(key.ContentHash, hash[:]) {
		return nil, refusal.New(refusal.IdempotencyKeyReused,
			"this Idempotency-Key was used within 24 hours for other public inputs or another destination: send a new key with new content")
	}
	return s.getIfStored(ctx, key.ID)
}
