package store

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// markDeadSQL also releases the lamports that the attempts booked on the spend caps. It does so
// once, because it does not change an attempt that is already dead. A swap without a live
// execution returns to the phase funded, as before the first quote.
const markDeadSQL = leasedSubmission + `, marked AS (
	UPDATE attempts a SET dead = true, paid = b.paid
	FROM held, unnest($4::bytea[], $5::bigint[]) AS b (signature, paid)
	WHERE a.submission_id = held.id AND a.signature = b.signature AND NOT a.dead
	RETURNING held.kind = 'transfer' AS transfer, b.paid - COALESCE(a.booked, a.cost) AS lamports, a.purpose
), phase_reset AS (
	UPDATE swaps w SET phase = 'funded' FROM held
	WHERE w.id = held.id AND w.phase = 'quoted' AND EXISTS (SELECT FROM marked WHERE purpose = 'execute')
		AND NOT EXISTS (SELECT FROM attempts a WHERE a.submission_id = held.id AND a.purpose = 'execute' AND NOT a.dead AND a.signature <> ALL ($4::bytea[]))
), spend_change AS (
	SELECT transfer, lamports FROM marked
), caps_updated AS (` + spendSQL + `)
SELECT true FROM held`

// MarkAttemptsDead implements submission.Store.
func (s *Store) MarkAttemptsDead(ctx context.Context, l txmgr.Lease, attempts []txmgr.DeadAttempt) error {
	if len(attempts) == 0 {
		return nil
	}
	signatures, paid := make([][]byte, len(attempts)), make([]int64, len(attempts))
	for i := range attempts {
		signatures[i], paid[i] = attempts[i].Signature[:], int64(attempts[i].Paid) //nolint:gosec // lamports are below 2^63
	}
	return s.queryUnderLease(ctx, "mark attempts dead", markDeadSQL, l.ID, l.Epoch, l.Owner, signatures, paid)
}
