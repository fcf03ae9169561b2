package store

import (
	"context"
	"fmt"
	"time"
)

// idempotencyWindow is how long an Idempotency-Key is kept.
const idempotencyWindow = 24 * time.Hour

// forgetKey deletes a key that is older than the window, or whose submission is deleted, so
// that it can be used again.
func (s *Store) forgetKey(ctx context.Context, keyHash []byte) error {
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
