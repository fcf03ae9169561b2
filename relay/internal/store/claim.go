package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// A claim is one statement, so that rows, requests and attempts are read together or not at
// all. Everything but the lock reads the state at the statement's start. Another process
// may have claimed, advanced and released a row since then, and the row's new attempts
// would be missing. Such a row is skipped: its epoch at the start (seen) has to equal that
// of the locked row (picked).
//
// Claims name the kinds that this release knows, and skip kinds of a later release. Second
// legs have their own claim and index, because thousands may wait for a price. In the order
// of roots the second legs come last, so that the other claims can stop before them.
const (
	claimHead = `
WITH picked AS MATERIALIZED (
	SELECT s.id, s.epoch FROM submissions s WHERE `
	claimFree         = `s.lease_owner IS NULL AND s.due_at <= now()`
	claimOpen         = `s.state IN ('pending', 'processing') AND ` + claimFree
	claimDue          = claimOpen + ` AND s.root_seq < ` + lastRootSeq + ` AND s.kind IN (` + firstLegs + `)`
	claimExecutionDue = claimOpen + ` AND s.kind = 'swap_execution'`
	claimLanded       = `s.state = 'completed' AND NOT s.finalized AND ` + claimFree + ` AND s.kind IN (` + firstLegs + `, 'swap_execution')`
	claimAlive        = ` AND EXISTS (SELECT FROM workers w WHERE w.id = $1 AND w.until > now())`
	claimTail         = ` LIMIT $2 FOR UPDATE SKIP LOCKED
), s AS (
	UPDATE submissions s SET lease_owner = $1, epoch = s.epoch + 1, state = CASE s.state WHEN 'pending' THEN 'processing' ELSE s.state END
	FROM picked, submissions seen WHERE s.id = picked.id AND seen.id = picked.id AND seen.epoch = picked.epoch
	RETURNING s.*
)
SELECT ` + submissionColumns + `, ` + attemptColumns + `
FROM s` + joinsSQL + ` LEFT JOIN attempts a ON a.submission_id = s.id
ORDER BY `
	byRoot, byDue, byArrival = `s.root_seq, s.job_id`, `s.due_at, s.job_id`, `s.job_id`
	thenByAttempt            = `, a.epoch, a.created_at, a.signature`

	// firstLegs are the kinds that a client requests.
	firstLegs = `'transfer', 'withdrawal', 'swap'`
	// lastRootSeq is the root_seq of second legs.
	lastRootSeq = `9223372036854775807`

	claimSQL           = claimHead + claimDue + claimAlive + ` ORDER BY ` + byRoot + claimTail + byRoot + thenByAttempt
	claimExecutionsSQL = claimHead + claimExecutionDue + claimAlive + ` ORDER BY ` + byDue + claimTail + byDue + thenByAttempt
	claimLandedSQL     = claimHead + claimLanded + claimAlive + ` ORDER BY ` + byArrival + claimTail + byArrival + thenByAttempt
)

// Claim implements submission.Store. It claims the submissions with the oldest root first, and of
// these the oldest submission first.
func (s *Store) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claim(ctx, claimSQL, worker, limit)
}

// ClaimLanded implements submission.Store.
func (s *Store) ClaimLanded(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claim(ctx, claimLandedSQL, worker, limit)
}

// ClaimSwapExecutions implements submission.Store.
func (s *Store) ClaimSwapExecutions(ctx context.Context, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	return s.claim(ctx, claimExecutionsSQL, worker, limit)
}

const (
	// holdUnreadable is the hold reason of a submission whose rows cannot be decoded. The
	// submission is tried again every unreadableDelay, because a later release may be able to
	// decode it. It does not delay other submissions.
	holdUnreadable  = "unreadable"
	unreadableDelay = 10 * time.Minute
)

func (s *Store) claim(ctx context.Context, sql string, worker uuid.UUID, limit int) ([]*txmgr.Job, error) {
	rows, err := s.Pool.Query(ctx, sql, worker, limit)
	if err != nil {
		return nil, unavailable(fmt.Errorf("claim submissions: %w", err))
	}
	claimed, unreadable, err := readClaimed(rows)
	if err != nil {
		return nil, unavailable(fmt.Errorf("claim submissions: %w", err))
	}
	for _, l := range unreadable {
		// If this write fails, the lease stays in the database, and the worker does not know of
		// it. The worker's lease audit then releases it, and the submission is claimed again.
		_ = s.Release(ctx, l, unreadableDelay, holdUnreadable)
	}
	return claimed, nil
}

// readClaimed joins the rows into jobs. A submission has one row for each attempt, in
// sequence, or one row without an attempt. Leases of undecodable rows are returned separately.
func readClaimed(rows pgx.Rows) (out []*txmgr.Job, unreadable []txmgr.Lease, err error) {
	defer rows.Close()
	var last txmgr.Lease
	for rows.Next() {
		var r submissionRow
		var a attemptRow
		if err := rows.Scan(append(r.targets(), a.targets()...)...); err != nil {
			return nil, nil, err
		}
		if l := r.s.Lease(); l != last {
			last = l
			sub, err := r.submission()
			if err != nil {
				unreadable = append(unreadable, l)
				continue
			}
			out = append(out, sub.Job())
		}
		if n := len(out) - 1; n >= 0 && out[n].ID == last.ID {
			a.addTo(out[n])
		}
	}
	return out, unreadable, rows.Err()
}
