package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"
)

// RecordTreeSlot implements submission.Store. Only the first process to observe a slot writes. A
// lower slot replaces the recorded one if no higher slot has come for a minute. Without this
// rule, one node that reported too high a slot would make all other nodes count as behind for ever.
func (s *Store) RecordTreeSlot(ctx context.Context, pool solana.PublicKey, slot uint64) error {
	// The first WHERE takes no lock, so that processes which come later wait for nobody's commit.
	_, err := s.Pool.Exec(ctx, `INSERT INTO sightings (pool, slot)
		SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM sightings WHERE pool = $1 AND slot >= $2 AND seen_at >= now() - interval '1 minute')
		ON CONFLICT (pool) DO UPDATE SET slot = EXCLUDED.slot, seen_at = now()
		WHERE sightings.slot < EXCLUDED.slot OR sightings.seen_at < now() - interval '1 minute'`, pool.Bytes(), int64(slot)) //nolint:gosec // slots are below 2^63
	if err != nil {
		return unavailable(fmt.Errorf("record tree slot: %w", err))
	}
	return nil
}

// HighestTreeSlot implements submission.Store. It reads the recorded slot of one pool.
func (s *Store) HighestTreeSlot(ctx context.Context, pool solana.PublicKey) (slot uint64, err error) {
	if err := s.Pool.QueryRow(ctx, `SELECT COALESCE(max(slot), 0) FROM sightings WHERE pool = $1`, pool.Bytes()).Scan(&slot); err != nil {
		return 0, unavailable(fmt.Errorf("read the pool's newest tree slot: %w", err))
	}
	return slot, nil
}

// LatestTreeSlot returns the highest recorded slot of all pools, and the time since it was
// recorded; 0 and 0 if no slot is recorded.
func (s *Store) LatestTreeSlot(ctx context.Context) (slot uint64, ago time.Duration, err error) {
	var age float64
	err = s.Pool.QueryRow(ctx, `SELECT slot, EXTRACT(epoch FROM now() - seen_at)::float8 FROM sightings ORDER BY slot DESC LIMIT 1`).Scan(&slot, &age)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, unavailable(fmt.Errorf("read the newest tree slot of all pools: %w", err))
	}
	return slot, seconds(age), nil
}
