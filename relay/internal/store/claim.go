package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// A claim is one statement, so that no answer is half a claim: rows, requests
// and attempts come together. All of it but the lock is read as of the
// statement's start; a row that somebody else claimed, advanced and released
// since then would come without his attempts. It is left alone: the epoch as of
// the start (seen) has to be that of the row as it was locked (picked).
const (
	claimHead = `
WITH picked AS MATERIALIZED (
	SELECT s.id, s.epoch FROM submissions s WHERE `
	claimDue    = `s.state IN ('pending', 'processing') AND s.lease_owner IS NULL AND s.due_at <= now()`
	claimLanded = `s.state = 'completed' AND NOT s.finalized AND s.lease_owner IS NULL AND s.due_at <= now()`
	claimAlive  = ` AND EXISTS (SELECT FROM workers w WHERE w.id = $1 AND w.until > now())`
	claimTail   = ` LIMIT $2 FOR UPDATE SKIP LOCKED
), s AS (
	UPDATE submissions s SET lease_owner = $1, epoch = s.epoch + 1, state = CASE s.state WHEN 'pending' THEN 'processing' ELSE s.state END
	FROM picked, submissions seen WHERE s.id = picked.id AND seen.id = picked.id AND seen.epoch = picked.epoch
	RETURNING s.*
)
SELECT ` + columns + `, ` + attemptColumns + `
FROM s JOIN requests r ON r.submission_id = s.id LEFT JOIN attempts a ON a.submission_id = s.id
ORDER BY s.root_seq, s.job_id, a.epoch, a.created_at, a.signature`

	// claimBegun is what was taken up before and is held by no reason: its attempts
	// may be on the chain.
	claimBegun = `(s.state = 'processing' AND s.hold_reason IS NULL)`

	claimSQL = claimHead + claimDue + claimAlive + ` ORDER BY s.root_seq, s.job_id` + claimTail
	// probeSQL takes one of those that wait, in turn: each is due again later than
	// those that were not tried since. In the order of roots the same few would be
	// tried for ever, which may wait for something else.
	probeSQL = claimHead + claimDue + claimAlive + ` AND (` + claimBegun + ` OR s.id = (
		SELECT s.id FROM submissions s WHERE ` + claimDue + ` AND NOT ` + claimBegun + ` ORDER BY s.due_at, s.root_seq, s.job_id LIMIT 1
	)) ORDER BY s.root_seq, s.job_id` + claimTail
	claimLandedSQL = claimHead + claimLanded + claimAlive + ` ORDER BY s.job_id` + claimTail
)

// Claim implements submission.Store. Among those of one root it takes the one
// first that came first.
func (s *Store) Claim(ctx context.Context, worker uuid.UUID, limit int) ([]*submission.Claimed, error) {
	return s.claim(ctx, claimSQL, worker, limit)
}

// Probe implements submission.Store. It looks at the rows of all that is due,
// which is what waits to be tried again.
func (s *Store) Probe(ctx context.Context, worker uuid.UUID, limit int) ([]*submission.Claimed, error) {
	return s.claim(ctx, probeSQL, worker, limit)
}

// ClaimLanded implements submission.Store.
func (s *Store) ClaimLanded(ctx context.Context, worker uuid.UUID, limit int) ([]*submission.Claimed, error) {
	return s.claim(ctx, claimLandedSQL, worker, limit)
}

func (s *Store) claim(ctx context.Context, sql string, worker uuid.UUID, limit int) ([]*submission.Claimed, error) {
	rows, err := s.Pool.Query(ctx, sql, worker, limit)
	if err != nil {
		return nil, unavailable(fmt.Errorf("claim submissions: %w", err))
	}
	claimed, err := readClaimed(rows)
	if err != nil {
		return nil, unavailable(fmt.Errorf("claim submissions: %w", err))
	}
	return claimed, nil
}

// readClaimed puts the rows together: one for each attempt, those of a
// submission one after the other, or one for a submission without.
func readClaimed(rows pgx.Rows) ([]*submission.Claimed, error) {
	defer rows.Close()
	var out []*submission.Claimed
	for rows.Next() {
		var r record
		var a attemptRow
		if err := rows.Scan(append(r.targets(), a.targets()...)...); err != nil {
			return nil, err
		}
		if last := len(out) - 1; last < 0 || out[last].ID != r.s.ID {
			sub, err := r.submission()
			if err != nil {
				return nil, err
			}
			out = append(out, &submission.Claimed{Submission: sub})
		}
		a.addTo(out[len(out)-1])
	}
	return out, rows.Err()
}
