package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// SwapSummary summarises the fleet's swaps whose outcome is not final yet.
type SwapSummary struct {
	// ByPhase counts the swaps by phase. It contains executed and refunded swaps until a fork
	// can no longer undo them.
	ByPhase map[submission.Phase]int64
	// OldestAge is the time since the oldest unfinished swap was funded; 0 without one.
	OldestAge time.Duration
	// Overdue counts the unfinished swaps past their timeout slot. OldestOverdueSlots is how
	// many slots ago the first of them timed out.
	Overdue            int64
	OldestOverdueSlots uint64
}

// Unfinished counts the swaps that are neither executed nor refunded.
func (s SwapSummary) Unfinished() int64 {
	return s.ByPhase[submission.PhaseFunded] + s.ByPhase[submission.PhaseQuoted]
}

// swapsSQL reads only the partial index of swaps that are not final. The column ended means
// that the outcome is final.
const swapsSQL = `SELECT phase, count(*), EXTRACT(epoch FROM now() - min(created_at))::float8,
		count(*) FILTER (WHERE timeout_slot BETWEEN 1 AND $1), $1 - COALESCE(min(timeout_slot) FILTER (WHERE timeout_slot BETWEEN 1 AND $1), $1)
	FROM swaps WHERE NOT ended GROUP BY phase`

// Swaps summarises the swaps whose first leg has landed and whose outcome is not final. slot
// is the newest known slot; with 0 no swap counts as overdue.
func (s *Store) Swaps(ctx context.Context, slot uint64) (SwapSummary, error) {
	out := SwapSummary{ByPhase: map[submission.Phase]int64{}}
	rows, err := s.Pool.Query(ctx, swapsSQL, int64(slot)) //nolint:gosec // slots are below 2^63
	if err != nil {
		return out, unavailable(fmt.Errorf("sum up swaps: %w", err))
	}
	var phase submission.Phase
	var n, overdue, overdueSlots int64
	var age float64
	_, err = pgx.ForEachRow(rows, []any{&phase, &n, &age, &overdue, &overdueSlots}, func() error {
		out.ByPhase[phase] = n
		if phase == submission.PhaseExecuted || phase == submission.PhaseRefunded {
			return nil
		}
		out.OldestAge = max(out.OldestAge, seconds(age))
		out.Overdue += overdue
		out.OldestOverdueSlots = max(out.OldestOverdueSlots, uint64(overdueSlots)) //nolint:gosec // a difference that is not below zero
		return nil
	})
	if err != nil {
		return out, unavailable(fmt.Errorf("sum up swaps: %w", err))
	}
	return out, nil
}
