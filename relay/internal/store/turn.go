package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// turnSQL waits for the lock until the transaction's lock timeout. The server ends the transaction
// after ten seconds, so that a process whose machine is gone does not keep the lock.
const turnSQL = `SELECT set_config('lock_timeout', '500ms', true), set_config('idle_in_transaction_session_timeout', '10s', true),
	pg_advisory_xact_lock(hashtextextended(current_schema() || $1, 0))`

// turnTimeout bounds the locking, with the time to get a connection, and the unlocking. A connection
// that does not answer in this time is closed.
const turnTimeout = time.Second

// takeTurn waits until no other process has the turn for that name. After half a second, or when the
// database fails, it returns nil. The turn ends with the transaction, at the latest when end is called.
func (s *Store) takeTurn(ctx context.Context, name string) (tx pgx.Tx, end func()) {
	locking, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	tx, err := s.Pool.Begin(locking)
	if err != nil {
		return nil, func() {}
	}
	end = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // if it fails, the connection is closed, which ends the turn too
	}
	if _, err := tx.Exec(locking, turnSQL, name); err != nil {
		end()
		return nil, func() {}
	}
	return tx, end
}
