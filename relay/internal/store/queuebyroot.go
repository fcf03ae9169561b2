package store

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// individualHolds are the reasons for which some submissions wait while others proceed.
	individualHolds = `('` + txmgr.HoldHistory + `', '` + txmgr.HoldExpiry + `', '` + txmgr.HoldSecondEndpoint + `', '` + submission.HoldFailing + `', '` + submission.HoldFormat + `', '` + string(refusal.SpendCapReached) + `', '` + holdUnreadable + `')`
	// queueByRootSQL has one group for the submissions with an owner, whatever their roots are: they
	// are sent already. It omits submissions with an individual hold: they may wait for days, and
	// would make the pool look busy. While they wait, they append no leaves and so evict no root from
	// the root history.
	queueByRootSQL = `SELECT CASE WHEN lease_owner IS NULL THEN root_seq ELSE -1 END AS seq, count(*) FROM submissions
		WHERE pool = $1 AND state IN ('pending', 'processing') AND root_seq >= $2 AND root_seq < ` + lastRootSeq + ` AND COALESCE(hold_reason, '') NOT IN ` + individualHolds + `
		GROUP BY 1 ORDER BY 1`
)

// QueueByRoot implements submission.Store.
func (s *Store) QueueByRoot(ctx context.Context, pool solana.PublicKey, oldest uint64) (q submission.QueueByRoot, err error) {
	rows, err := s.Pool.Query(ctx, queueByRootSQL, pool.Bytes(), int64(oldest)) //nolint:gosec // counts of leaves are at most 2^32
	if err != nil {
		return q, unavailable(fmt.Errorf("count the queue: %w", err))
	}
	var seq int64
	var n int
	_, err = pgx.ForEachRow(rows, []any{&seq, &n}, func() error {
		if seq < 0 {
			q.InFlight = n
		} else {
			q.Waiting = append(q.Waiting, submission.AtRoot{Seq: uint64(seq), Submissions: n})
		}
		return nil
	})
	if err != nil {
		return q, unavailable(fmt.Errorf("count the queue: %w", err))
	}
	return q, nil
}
