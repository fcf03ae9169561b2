package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// markHeldSQL locks rows in the order of ids; see releaseAllSQL.
const markHeldSQL = `
WITH held AS MATERIALIZED (
	SELECT s.id FROM submissions s JOIN unnest($1::uuid[], $2::bigint[], $3::uuid[]) AS l (id, epoch, owner) ON l.id = s.id AND l.epoch = s.epoch
	WHERE s.lease_owner IS NOT DISTINCT FROM l.owner AND s.state || '' = 'processing' ORDER BY s.id FOR UPDATE OF s
)
UPDATE submissions s SET hold_reason = $4 FROM held WHERE s.id = held.id AND s.hold_reason IS DISTINCT FROM $4`

// MarkHeld implements submission.Store.
func (s *Store) MarkHeld(ctx context.Context, leases []txmgr.Lease, reason string) error {
	ids, epochs, owners := make([]uuid.UUID, len(leases)), make([]int64, len(leases)), make([]uuid.UUID, len(leases))
	for i, l := range leases {
		ids[i], epochs[i], owners[i] = l.ID, l.Epoch, l.Owner
	}
	if _, err := s.Pool.Exec(ctx, markHeldSQL, ids, epochs, owners, reason); err != nil {
		return unavailable(fmt.Errorf("mark submissions held: %w", err))
	}
	return nil
}
