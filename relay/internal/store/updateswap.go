package store

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// updateSwapSQL does not update a swap whose second leg has landed or failed. Only Reopen undoes
// a landing, after a fork.
const updateSwapSQL = `WITH ` + lockedSQL + `, held AS MATERIALIZED (
	SELECT id FROM locked WHERE state = 'processing'
), updated AS (
	UPDATE swaps w SET phase = $4, timeout_slot = CASE WHEN $5::bigint > 0 THEN $5 ELSE w.timeout_slot END
	FROM held WHERE w.id = held.id RETURNING w.id
)
SELECT true FROM updated`

// UpdateSwap implements submission.Store. A timeout of 0 keeps the stored timeout slot.
func (s *Store) UpdateSwap(ctx context.Context, l txmgr.Lease, phase submission.Phase, timeout uint64) error {
	switch phase {
	case submission.PhaseFunded, submission.PhaseQuoted:
		return s.queryUnderLease(ctx, "update swap", updateSwapSQL, l.ID, l.Epoch, l.Owner, string(phase), int64(timeout)) //nolint:gosec // slots are below 2^63
	default:
		return fmt.Errorf("update swap: phase is %q, expected funded or quoted; a landing sets the last phase", phase)
	}
}
