package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

const (
	// backlogSQL groups the submissions that have not landed. It reads only their partial
	// index.
	backlogSQL = `SELECT state, COALESCE(hold_reason, ''), lease_owner IS NULL AND due_at <= now(), count(*),
			EXTRACT(epoch FROM now() - min(created_at))::float8, EXTRACT(epoch FROM now() - min(due_at))::float8
		FROM submissions WHERE state IN ('pending', 'processing') GROUP BY 1, 2, 3`

	// jobsSQL lists the queue, most urgent first.
	jobsSQL = `SELECT job_id FROM submissions WHERE state IN ('pending', 'processing') ORDER BY root_seq, job_id LIMIT 100`

	workersSQL = `SELECT COALESCE(hold_reason, ''), count(*) FROM workers WHERE until > now() GROUP BY 1`
)

// group is one row of backlogSQL.
type group struct {
	State submission.State
	Hold  string
	Free  bool // due, and leased to no worker
	Count int64
	Age   float64 // seconds since the oldest was accepted
	Wait  float64 // seconds since the first was due; negative if none is due yet
}

// Backlog implements submission.Store. It reads every open row, so callers that serve many
// requests cache its result.
func (s *Store) Backlog(ctx context.Context) (submission.Backlog, error) {
	var open []group
	var jobs []int64
	workers := map[string]int64{}
	b := &pgx.Batch{}
	b.Queue(backlogSQL).Query(func(rows pgx.Rows) (err error) {
		open, err = pgx.CollectRows(rows, pgx.RowToStructByPos[group])
		return err
	})
	b.Queue(jobsSQL).Query(func(rows pgx.Rows) (err error) {
		jobs, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	b.Queue(workersSQL).Query(func(rows pgx.Rows) error {
		var hold string
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&hold, &n}, func() error { workers[hold] = n; return nil })
		return err
	})
	if err := s.Pool.SendBatch(ctx, b).Close(); err != nil {
		return submission.Backlog{}, unavailable(fmt.Errorf("count backlog: %w", err))
	}
	return tally(open, workers, jobs), nil
}

// tally sums the groups. workers counts the live workers by the reason of their pause, ""
// for none.
func tally(open []group, workers map[string]int64, jobs []int64) submission.Backlog {
	b := submission.Backlog{Held: map[string]int64{}, QueuedJobs: jobs}
	for _, g := range open {
		age := time.Duration(g.Age * float64(time.Second))
		if g.State == submission.Pending {
			b.Pending += g.Count
			b.OldestAge = max(b.OldestAge, age)
		} else {
			b.Processing += g.Count
		}
		if g.Hold != "" {
			b.Held[g.Hold] += g.Count
		} else if g.Free {
			b.Due += g.Count
			b.OldestDue = max(b.OldestDue, time.Duration(g.Wait*float64(time.Second)))
		}
	}
	if hold := fleetPause(workers); hold != "" && b.Due > 0 {
		b.Held[hold] += b.Due
		b.Due, b.OldestDue = 0, 0
	}
	return b
}

// fleetPause returns the most frequent reason if every worker is paused: more workers would
// not help then. Without workers it returns "", because starting one would help.
func fleetPause(workers map[string]int64) string {
	if len(workers) == 0 || workers[""] > 0 {
		return ""
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(workers)), func(a, b string) int { return cmp.Compare(workers[a], workers[b]) })
}
