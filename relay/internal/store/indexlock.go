package store

import (
	"context"
	"time"
)

// indexLockSQL waits for the lock until the transaction's lock timeout. The server ends the transaction
// after ten seconds, so that a process whose machine is gone does not keep the lock. A pass that takes
// longer, such as the first one, loses it, and then another process may read the same blocks.
const indexLockSQL = `SELECT set_config('lock_timeout', '500ms', true), set_config('idle_in_transaction_session_timeout', '10s', true),
	pg_advisory_xact_lock(hashtextextended(current_schema() || 'relaypool index ' || encode($1::bytea, 'hex'), 0))`

// indexLockTimeout bounds the locking, with the time to get a connection, and the unlocking. A connection
// that does not answer in this time is closed.
const indexLockTimeout = time.Second

// Lock implements commitments.Store.
func (c *Commitments) Lock(ctx context.Context) (unlock func()) {
	locking, cancel := context.WithTimeout(ctx, indexLockTimeout)
	defer cancel()
	tx, err := c.store.Pool.Begin(locking)
	if err != nil {
		return func() {}
	}
	unlock = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), indexLockTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // if it fails, the connection is closed, which unlocks too
	}
	if _, err := tx.Exec(locking, indexLockSQL, c.pool.Bytes()); err != nil {
		unlock()
		return func() {}
	}
	return unlock
}
