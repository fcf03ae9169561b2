package store

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// individualHolds are the reasons for which some submissions wait while others proceed.
	individualHolds = `('` + txmgr.HoldHistory + `', '` + txmgr.HoldExpiry + `', '` + txmgr.HoldSecondEndpoint + `', '` + submission.HoldFailing + `', '` + submission.HoldFormat + `', '` + string(refusal.SpendCapReached) + `', '` + holdUnreadable + `')`
	// aheadSQL is ordered so that it reads the index from its beginning and stops at the limit.
	// Only among submissions without an owner does the oldest root go first: the others are sent.
	// It omits submissions with an individual hold: they may wait for days, and would make the
	// pool look busy. While they wait, they append no leaves and so evict no root from the root
	// history. It also omits submissions whose root has left the root history.
	aheadSQL = `SELECT count(*) FROM (SELECT FROM submissions
		WHERE pool = $1 AND state IN ('pending', 'processing') AND root_seq >= $4 AND root_seq < ` + lastRootSeq + ` AND (root_seq <= $2 OR lease_owner IS NOT NULL) AND COALESCE(hold_reason, '') NOT IN ` + individualHolds + `
		ORDER BY root_seq, job_id LIMIT $3) AS ahead`
)

// CountAhead implements submission.Store.
func (s *Store) CountAhead(ctx context.Context, pool solana.PublicKey, oldest, rootSeq uint64, limit int) (n int, err error) {
	err = s.Pool.QueryRow(ctx, aheadSQL, pool.Bytes(), int64(rootSeq), limit, int64(oldest)).Scan(&n) //nolint:gosec // counts of leaves are at most 2^32
	if err != nil {
		return 0, unavailable(fmt.Errorf("count the submissions ahead: %w", err))
	}
	return n, nil
}
