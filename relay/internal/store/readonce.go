package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// defaultReadOnceWait is how long a process waits for another one that reads the same. A client may wait for what is
// read, and those who wait for a new blockhash wait for the lock too.
const defaultReadOnceWait = 200 * time.Millisecond

// ReadOnce implements chain.ReadOnce. When the database fails, each process reads for itself.
func (s *Store) ReadOnce(ctx context.Context, name string, use func(value []byte, age time.Duration) bool, read func(context.Context) (value []byte)) {
	if s.alone.Load() {
		read(ctx)
		return
	}
	value, age, readAt := sharedValue(ctx, s.Pool, name, s.readOnceWait)
	if value != nil && use(value, age) {
		return
	}
	if readAt.IsZero() { // the database does not answer
		read(ctx)
		return
	}
	tx, unlock := s.lock(ctx, "read "+name, s.readOnceWait)
	defer unlock()
	if tx == nil {
		read(ctx)
		return
	}
	value, age, readAt = sharedValue(ctx, tx, name, s.readOnceWait)
	if value != nil && use(value, age) {
		return
	}
	if value := read(ctx); value != nil && !readAt.IsZero() {
		shareValue(ctx, tx, name, value, readAt)
	}
}

// sharedValue returns the value that was shared, nil if there is none, and how old it is at most. now is the
// time of the database's clock; zero if it does not answer.
func sharedValue(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, name string, timeout time.Duration) (value []byte, age time.Duration, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	var aged *float64
	err := db.QueryRow(ctx, `SELECT clock, value, EXTRACT(epoch FROM clock - read_at)::float8
		FROM clock_timestamp() AS clock LEFT JOIN chain_reads ON name = $1`, name).Scan(&now, &value, &aged)
	if err != nil || aged == nil || *aged < 0 { // a failover may set the clock back
		return nil, 0, now
	}
	return value, seconds(*aged) + time.Since(began), now
}

// shareValue lets other processes use a value that was read after readAt, and unlocks.
func shareValue(ctx context.Context, tx pgx.Tx, name string, value []byte, readAt time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	_, err := tx.Exec(ctx, `INSERT INTO chain_reads (name, value, read_at) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value, read_at = EXCLUDED.read_at`, name, value, readAt)
	if err == nil {
		_ = tx.Commit(ctx) // if it fails, the next process reads again
	}
}
