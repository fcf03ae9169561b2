package store

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

const reopenSQL = `WITH ` + lockedSQL + `, reopened AS (
	UPDATE submissions s SET state = 'processing', rolled_back = true,
		signature = NULL, slot = NULL, leaf_indices = NULL, root = NULL, completed_at = NULL
	FROM locked l WHERE s.id = l.id AND l.state = 'completed' RETURNING s.id
), phase_reset AS (
	UPDATE swaps w SET phase = 'funded' FROM reopened WHERE w.id = reopened.id
)
SELECT true FROM reopened`

// Reopen implements submission.Store.
func (s *Store) Reopen(ctx context.Context, l txmgr.Lease) error {
	return s.queryUnderLease(ctx, "reopen submission", reopenSQL, l.ID, l.Epoch, l.Owner)
}
