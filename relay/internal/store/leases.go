package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// heartbeatSQL returns whether the worker's last heartbeat had expired, and whether there is no other
// live worker. It locks the row first, so that FreeDeadProcesses skips it. If FreeDeadProcesses has
// already deleted the row, heartbeatSQL inserts it again.
const heartbeatSQL = `
WITH before AS MATERIALIZED (
	SELECT id, until <= now() AS lapsed FROM workers WHERE id = $1 FOR UPDATE
), renewed AS (
	UPDATE workers w SET until = now() + $2::interval, hold_reason = NULLIF($3, '') FROM before WHERE w.id = before.id RETURNING before.lapsed
), inserted AS (
	INSERT INTO workers (id, until, hold_reason) SELECT $1, now() + $2::interval, NULLIF($3, '') WHERE NOT EXISTS (SELECT FROM before)
	ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until, hold_reason = EXCLUDED.hold_reason
)
SELECT COALESCE((SELECT lapsed FROM renewed), true), NOT EXISTS (SELECT FROM workers WHERE id <> $1 AND until > now())`

// Heartbeat implements submission.Store. The result is also true for a worker's first heartbeat,
// because the statement cannot tell a new worker from one whose row FreeDeadProcesses has
// deleted.
func (s *Store) Heartbeat(ctx context.Context, w txmgr.Worker, lease time.Duration) (lapsed bool, err error) {
	pool := s.Heartbeats
	if pool == nil {
		pool = s.Pool
	}
	var alone bool
	if err := pool.QueryRow(ctx, heartbeatSQL, w.ID, lease, w.PausedBy).Scan(&lapsed, &alone); err != nil {
		return false, unavailable(fmt.Errorf("renew the process's heartbeat: %w", err))
	}
	s.alone.Store(alone)
	return lapsed, nil
}

// releaseAllSQL locks in the order of ids, like every statement that writes many submissions
// and waits for locks, so that no two of them deadlock.
const releaseAllSQL = `
WITH retired AS (DELETE FROM workers WHERE id = $1
), picked AS MATERIALIZED (
	SELECT id FROM submissions WHERE lease_owner = $1 ORDER BY id FOR UPDATE
)
UPDATE submissions s SET lease_owner = NULL, epoch = s.epoch + 1, due_at = now() FROM picked WHERE s.id = picked.id AND s.lease_owner = $1`

// ReleaseAll implements submission.Store.
func (s *Store) ReleaseAll(ctx context.Context, worker uuid.UUID) (freed int, err error) {
	tag, err := s.Pool.Exec(ctx, releaseAllSQL, worker)
	if err != nil {
		return 0, unavailable(fmt.Errorf("release the process's leases: %w", err))
	}
	return int(tag.RowsAffected()), nil
}

const leasesSQL = `SELECT id, epoch, lease_owner FROM submissions WHERE lease_owner = $1`

// Leases implements submission.Store.
func (s *Store) Leases(ctx context.Context, worker uuid.UUID) ([]txmgr.Lease, error) {
	leases, err := collect(ctx, s, pgx.RowToStructByPos[txmgr.Lease], leasesSQL, worker)
	if err != nil {
		return nil, fmt.Errorf("list the process's leases: %w", err)
	}
	return leases, nil
}

const releaseSQL = `WITH ` + lockedSQL + `
UPDATE submissions s SET lease_owner = NULL, due_at = now() + $4::interval,
	hold_reason = NULLIF($5, ''), tries = s.tries + CASE WHEN $5 = '' THEN 1 ELSE 0 END
	FROM locked l WHERE s.id = l.id AND l.state IN ('processing', 'completed')`

// Release implements submission.Store.
func (s *Store) Release(ctx context.Context, l txmgr.Lease, delay time.Duration, hold string) error {
	return s.execUnderLease(ctx, "release submission", releaseSQL, l.ID, l.Epoch, l.Owner, delay, hold)
}

// execUnderLease runs one statement under a lease. The statement writes one row, or none
// when the lease is lost.
func (s *Store) execUnderLease(ctx context.Context, what, sql string, args ...any) error {
	tag, err := s.Pool.Exec(ctx, sql, args...)
	if err != nil {
		return unavailable(fmt.Errorf("%s: %w", what, err))
	}
	if tag.RowsAffected() == 0 {
		return txmgr.ErrLeaseLost
	}
	return nil
}

// queryUnderLease runs one statement under a lease. The statement returns a row, or none
// when the lease is lost.
func (s *Store) queryUnderLease(ctx context.Context, what, sql string, args ...any) error {
	var wrote bool
	err := s.Pool.QueryRow(ctx, sql, args...).Scan(&wrote)
	if errors.Is(err, pgx.ErrNoRows) {
		return txmgr.ErrLeaseLost
	}
	if err != nil {
		return unavailable(fmt.Errorf("%s: %w", what, err))
	}
	return nil
}

// collect reads all rows.
func collect[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := s.Pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, unavailable(err)
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, unavailable(err)
}

// lockedSQL finds the row of a lease by its id and locks it. Conditions on the state belong in
// later WITH queries. If the condition here named the state, or compared the owner with "=", the
// planner might scan a whole partial index for one row: these indexes are often empty, so it
// estimates them as empty. For the same reason other statements append an empty string to state:
// then no partial index matches.
const lockedSQL = `locked AS MATERIALIZED (
	SELECT id, epoch, kind, state, lease_owner, tries <> 0 OR hold_reason IS NOT NULL AS waited
	FROM submissions WHERE id = $1 AND epoch = $2 AND lease_owner IS NOT DISTINCT FROM $3::uuid FOR UPDATE
)`

// leasedSubmission locks the row of a lease, in any state.
const leasedSubmission = `
WITH ` + lockedSQL + `, held AS MATERIALIZED (
	SELECT id, kind FROM locked
)`
