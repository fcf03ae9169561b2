package store

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// advisoryLockSQL waits for the lock until the transaction's lock timeout. The server ends the transaction
// after ten seconds, so that a process whose machine is gone does not keep the lock.
const advisoryLockSQL = `SELECT set_config('lock_timeout', $2, true), set_config('idle_in_transaction_session_timeout', '10s', true),
	pg_advisory_xact_lock(hashtextextended(current_schema() || 'relaypool ' || $1, 0))`

// unlockTimeout bounds the unlocking. A connection that does not answer in this time is closed.
const unlockTimeout = time.Second

// lock begins a transaction that holds an advisory lock. If another process holds the lock for longer than
// wait, or the database fails, it returns nil; with the time to get a connection, it takes twice as long at
// most. The caller must call unlock.
func (s *Store) lock(ctx context.Context, name string, wait time.Duration) (tx pgx.Tx, unlock func()) {
	locking, cancel := context.WithTimeout(ctx, 2*wait)
	defer cancel()
	tx, err := s.Pool.Begin(locking)
	if err != nil {
		return nil, func() {}
	}
	unlock = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // if it fails, the connection is closed, which unlocks too
	}
	if _, err := tx.Exec(locking, advisoryLockSQL, name, strconv.FormatInt(wait.Milliseconds(), 10)); err != nil {
		unlock()
		return nil, func() {}
	}
	return tx, unlock
}
