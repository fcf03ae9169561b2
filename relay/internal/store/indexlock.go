package store

import (
	"context"
	"time"
)

// indexLockSQL waits for the lock until the transaction's lock timeout. The server ends a transaction
// that has been idle for longer than a pass takes, so that a process whose machine is gone does not
// keep the lock.
const indexLockSQL = `SELECT set_config('lock_timeout', '500ms', true), set_config('idle_in_transaction_session_timeout', '10s', true),
	pg_advisory_xact_lock(hashtextextended(current_schema() || 'relaypool index ' || encode($1::bytea, 'hex'), 0))`

// unlockTimeout bounds the unlocking; the connection is closed after it.
const unlockTimeout = time.Second

// Lock implements commitments.Store.
func (c *Commitments) Lock(ctx context.Context) (unlock func()) {
	tx, err := c.store.Pool.Begin(ctx)
	if err != nil {
		return func() {}
	}
	unlock = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // if it fails, the connection is closed, which unlocks too
	}
	if _, err := tx.Exec(ctx, indexLockSQL, c.pool.Bytes()); err != nil {
		unlock()
		return func() {}
	}
	return unlock
}
