package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

const (
	// claimStarted selects started submissions that have no hold reason, or wait for a
	// second endpoint's answer: their attempts may be on the chain.
	claimStarted = `(s.state = 'processing' AND COALESCE(s.hold_reason, '') IN ('', '` + txmgr.HoldSecondEndpoint + `'))`

	// probeSQL finds out whether the cause of a pause is gone. It claims all started submissions,
	// and from the rest the submission that has been due longest. If the try of that submission
	// fails, its due time moves, so the next probe claims another one. In the order of roots, every
	// probe would claim the same submission. If that one waits for something other than the
	// cause of the pause, its tries do not show whether the pause can end.
	probeSQL = claimHead + claimDue + claimAlive + ` AND (` + claimStarted + ` OR s.id = (
		SELECT s.id FROM submissions s WHERE ` + claimDue + ` AND NOT ` + claimStarted + ` ORDER BY s.due_at, ` + byRoot + ` LIMIT 1
	)) ORDER BY ` + byRoot + claimTail + byRoot + thenByAttempt
)

// Probe implements submission.Store. It reads all due rows.
func (s *Store) Probe(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claim(ctx, probeSQL, worker, limit)
}
