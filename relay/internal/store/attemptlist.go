package store

import (
	"context"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// LiveAttempt is an attempt that may still land, as the command `relay attempts` shows it:
// without the content of the request.
type LiveAttempt struct {
	JobID int64
	// ID is the id of the request in GET /status.
	ID      uuid.UUID
	Purpose txmgr.Purpose
	// Age is the time since the attempt was signed.
	Age                                 time.Duration
	BlockhashSlot, LastValidBlockHeight uint64
	// HoldReason is the reason for which the submission waits; "" for none.
	HoldReason string
	Signature  solana.Signature
}

const liveAttemptsSQL = `SELECT s.job_id, COALESCE(s.parent, s.id), a.purpose, EXTRACT(epoch FROM now() - a.created_at)::float8,
		a.blockhash_slot, a.last_valid_block_height, COALESCE(s.hold_reason, ''), a.signature
	FROM submissions s JOIN attempts a ON a.submission_id = s.id
	WHERE s.state IN ('pending', 'processing') AND NOT a.dead AND a.created_at < now() - $1::interval
	ORDER BY a.created_at, a.signature LIMIT $2`

// LiveAttempts lists at most limit attempts that may still land and were signed
// longer ago than age, the oldest first. It reads every open row.
func (s *Store) LiveAttempts(ctx context.Context, age time.Duration, limit int) ([]LiveAttempt, error) {
	listed, err := collect(ctx, s, func(row pgx.CollectableRow) (a LiveAttempt, err error) {
		var ageSeconds float64
		var sig []byte
		err = row.Scan(&a.JobID, &a.ID, &a.Purpose, &ageSeconds, &a.BlockhashSlot, &a.LastValidBlockHeight, &a.HoldReason, &sig)
		a.Age = seconds(ageSeconds)
		if s := signature(sig); s != nil {
			a.Signature = *s
		}
		return a, err
	}, liveAttemptsSQL, age, limit)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	return listed, nil
}
