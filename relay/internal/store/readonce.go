package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ReadOnce implements chain.ReadOnce. Nothing depends on the database but the number of reads.
func (s *Store) ReadOnce(ctx context.Context, name string, use func(value []byte, slot uint64, age time.Duration) bool, read func(context.Context) (value []byte, slot uint64)) {
	if s.alone.Load() {
		read(ctx)
		return
	}
	tx, end := s.takeTurn(ctx, "relaypool read "+name)
	defer end()
	if tx == nil {
		read(ctx)
		return
	}
	var turn time.Time // by the database's clock, before the read
	known := func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, turnTimeout)
		defer cancel()
		began := time.Now()
		var value []byte
		var slot *uint64
		var age *float64
		err := tx.QueryRow(ctx, `SELECT now, value, slot, EXTRACT(epoch FROM now - read_at)::float8
			FROM clock_timestamp() AS now LEFT JOIN chain_reads ON name = $1`, name).Scan(&turn, &value, &slot, &age)
		return err == nil && age != nil && *age >= 0 && use(value, *slot, seconds(*age)+time.Since(began))
	}
	if known(ctx) {
		return
	}
	if value, slot := read(ctx); value != nil && !turn.IsZero() {
		s.share(ctx, tx, name, value, slot, turn)
	}
}

// share lets other processes use what was read in this process's turn.
func (s *Store) share(ctx context.Context, tx pgx.Tx, name string, value []byte, slot uint64, turn time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnTimeout)
	defer cancel()
	_, err := tx.Exec(ctx, `INSERT INTO chain_reads (name, value, slot, read_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value, slot = EXCLUDED.slot, read_at = EXCLUDED.read_at`, name, value, int64(slot), turn) //nolint:gosec // slots are below 2^63
	if err == nil {
		_ = tx.Commit(ctx) // if it fails, the next process reads again
	}
}
