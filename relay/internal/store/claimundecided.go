package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// undecidedSQL claims submissions that wait for an attempt to expire, even if they are not due.
// Only `relay attempts --end` uses it, because the person who runs that command should not have
// to wait until the submissions are due.
const undecidedSQL = claimHead + undecidedCondition + ` AND s.lease_owner IS NULL` + claimAlive + ` ORDER BY ` + byDue + claimTail + byDue + thenByAttempt

const undecidedCondition = `s.state = 'processing' AND s.hold_reason = '` + txmgr.HoldExpiry + `' AND s.kind IN (` + firstLegs + `, 'swap_execution')`

// ClaimUndecided implements txmgr.UndecidedStore.
func (s *Store) ClaimUndecided(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claim(ctx, undecidedSQL, worker, limit)
}

// CountUndecided implements txmgr.UndecidedStore. It reads every open row.
func (s *Store) CountUndecided(ctx context.Context) (n int, err error) {
	if err := s.Pool.QueryRow(ctx, `SELECT count(*) FROM submissions s WHERE `+undecidedCondition).Scan(&n); err != nil {
		return 0, unavailable(fmt.Errorf("count undecided submissions: %w", err))
	}
	return n, nil
}
