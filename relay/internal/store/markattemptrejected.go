package store

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

const markRejectedSQL = leasedSubmission + `, refused AS (
	UPDATE attempts a SET refused = true FROM held WHERE a.submission_id = held.id AND a.signature = $4 AND NOT a.refused
)
SELECT true FROM held`

// MarkAttemptRejected implements submission.Store.
func (s *Store) MarkAttemptRejected(ctx context.Context, l txmgr.Lease, sig solana.Signature) error {
	return s.queryUnderLease(ctx, "mark attempt rejected", markRejectedSQL, l.ID, l.Epoch, l.Owner, sig[:])
}
