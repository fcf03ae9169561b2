package store

import (
	"context"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// ListedSwap is a swap as the command `relay swaps` shows it, without amounts and addresses.
type ListedSwap struct {
	// ID is the id of the request in GET /status. JobID is the id in GET /backlog.
	ID    uuid.UUID
	JobID int64
	Phase submission.Phase
	// State is the state of the second leg. Error is the code of its failure, or "".
	State submission.State
	Error string
	// Age is the time since the first leg landed.
	Age time.Duration
	// TimeoutSlot is the first slot in which the swap can be refunded; 0 when unknown.
	TimeoutSlot uint64
	// HeldBy is the reason for which the second leg waits; "" for none. DueIn is the time until
	// the second leg is due; 0 when it is due already. Leased reports that a process has the
	// second leg's lease.
	HeldBy string
	DueIn  time.Duration
	Leased bool
	// Tries counts failed steps since the last progress. Attempts counts signed
	// transactions, of which Live may still land.
	Tries, Attempts, Live int
	// Signature is the signature of the transaction that ended the swap; nil before.
	Signature *solana.Signature
	// Final reports that no fork can change the outcome any more.
	Final bool
}

// HasEnded reports that the swap is executed or refunded, or has failed because a fork undid its
// funding. Until Final is set, a fork can still undo an execution or a refund.
func (l *ListedSwap) HasEnded() bool {
	return l.State == submission.Completed || l.State == submission.Failed
}

// Overdue reports whether the swap has passed its timeout slot and has not ended.
func (l *ListedSwap) Overdue(slot uint64) bool {
	return !l.HasEnded() && l.TimeoutSlot > 0 && l.TimeoutSlot <= slot
}

// The LATERAL queries look up the submission and the attempts of each listed swap. With plain
// joins the planner, which does not know the limit, would read all submissions and attempts.
const (
	listSwapsHead = `SELECT s.parent, s.job_id, w.phase, s.state, COALESCE(s.error_code, ''), EXTRACT(epoch FROM now() - w.created_at)::float8, w.timeout_slot,
		COALESCE(s.hold_reason, ''), COALESCE(EXTRACT(epoch FROM greatest(s.due_at - now(), interval '0')), 0)::float8, s.lease_owner IS NOT NULL,
		s.tries, counts.attempts, counts.live, s.signature, w.ended
	FROM (SELECT * FROM swaps `
	listSwapsTail = ` LIMIT $1) AS w CROSS JOIN LATERAL (SELECT * FROM submissions WHERE id = w.id LIMIT 1) AS s
	CROSS JOIN LATERAL (SELECT count(*) AS attempts, count(*) FILTER (WHERE NOT a.dead) AS live FROM attempts a WHERE a.submission_id = s.id) AS counts
	ORDER BY `
	listOpenSwapsSQL  = listSwapsHead + `WHERE NOT ended ORDER BY timeout_slot, created_at, id` + listSwapsTail + `w.timeout_slot, w.created_at, w.id`
	listFinalSwapsSQL = listSwapsHead + `WHERE ended ORDER BY created_at DESC, id` + listSwapsTail + `w.created_at DESC, w.id`
)

// ListSwaps lists at most limit swaps that are not final, the next timeout first.
func (s *Store) ListSwaps(ctx context.Context, limit int) ([]ListedSwap, error) {
	return s.listSwaps(ctx, listOpenSwapsSQL, limit)
}

// ListFinalSwaps lists at most limit swaps that are final and that retention has not deleted, the
// last funded first. It reads all final swaps.
func (s *Store) ListFinalSwaps(ctx context.Context, limit int) ([]ListedSwap, error) {
	return s.listSwaps(ctx, listFinalSwapsSQL, limit)
}

func (s *Store) listSwaps(ctx context.Context, sql string, limit int) ([]ListedSwap, error) {
	listed, err := collect(ctx, s, func(row pgx.CollectableRow) (l ListedSwap, err error) {
		var age, due float64
		var sig []byte
		err = row.Scan(&l.ID, &l.JobID, &l.Phase, &l.State, &l.Error, &age, &l.TimeoutSlot, &l.HeldBy, &due, &l.Leased,
			&l.Tries, &l.Attempts, &l.Live, &sig, &l.Final)
		l.Age, l.DueIn, l.Signature = seconds(age), seconds(due), signature(sig)
		return l, err
	}, sql, limit)
	if err != nil {
		return nil, fmt.Errorf("list swaps: %w", err)
	}
	return listed, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
