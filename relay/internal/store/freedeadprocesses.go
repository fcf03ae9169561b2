package store

import (
	"context"
	"fmt"
)

const (
	// deleteDeadWorkersSQL deletes workers whose heartbeat stopped. It skips a locked row:
	// the worker is renewing that row, or another process is deleting it.
	deleteDeadWorkersSQL = `DELETE FROM workers WHERE id IN (SELECT id FROM workers WHERE until <= now() FOR UPDATE SKIP LOCKED)`

	// freeLeasesSQL frees the leases of workers without a row. It also finds a lease that was
	// committed only after its worker's row was deleted. It steps from owner to owner through the
	// index and reads only the submissions of owners without a row, so its cost grows with the
	// number of owners, not with the number of leases. It skips locked rows, which are being
	// written: the next pass frees them.
	freeLeasesSQL = `
WITH RECURSIVE holder (id) AS (
	(SELECT lease_owner FROM submissions WHERE lease_owner IS NOT NULL ORDER BY lease_owner LIMIT 1)
	UNION ALL
	SELECT (SELECT s.lease_owner FROM submissions s WHERE s.lease_owner IS NOT NULL AND s.lease_owner > h.id ORDER BY s.lease_owner LIMIT 1)
	FROM holder h WHERE h.id IS NOT NULL
), dead AS MATERIALIZED (
	SELECT h.id FROM holder h WHERE h.id IS NOT NULL AND NOT EXISTS (SELECT FROM workers w WHERE w.id = h.id)
), picked AS MATERIALIZED (
	SELECT leased.id FROM dead CROSS JOIN LATERAL (
		SELECT s.id FROM submissions s WHERE s.lease_owner = dead.id LIMIT $1 FOR UPDATE SKIP LOCKED
	) AS leased LIMIT $1
)
UPDATE submissions s SET lease_owner = NULL, epoch = s.epoch + 1, due_at = now() FROM picked WHERE s.id = picked.id`

	// freeBatch is the maximum number of leases that one transaction frees. New owners can start
	// on them while the rest is being freed.
	freeBatch = 500
)

// FreeDeadProcesses implements submission.Store.
func (s *Store) FreeDeadProcesses(ctx context.Context) (freed int, err error) {
	if _, err := s.Pool.Exec(ctx, deleteDeadWorkersSQL); err != nil {
		return 0, unavailable(fmt.Errorf("delete dead workers: %w", err))
	}
	for {
		tag, err := s.Pool.Exec(ctx, freeLeasesSQL, freeBatch)
		if err != nil {
			return freed, unavailable(fmt.Errorf("free the leases of dead workers: %w", err))
		}
		freed += int(tag.RowsAffected())
		if tag.RowsAffected() < freeBatch {
			return freed, nil
		}
	}
}
