package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// Checkpoint implements commitments.Store.
func (c *Commitments) Checkpoint(ctx context.Context, generation, most uint64) (p commitments.Checkpoint, err error) {
	err = c.store.Pool.QueryRow(ctx, `SELECT last_leaf + 1, frontier FROM commitment_checkpoints JOIN commitment_index USING (pool)
		WHERE pool = $1 AND generation = $2 AND last_leaf < $3 ORDER BY last_leaf DESC LIMIT 1`, c.pool.Bytes(), generation, most).
		Scan(&p.Leaves, &p.Frontier)
	if errors.Is(err, pgx.ErrNoRows) {
		return commitments.Checkpoint{}, nil
	}
	if err != nil {
		return p, unavailable(fmt.Errorf("read a checkpoint of the commitment index: %w", err))
	}
	return p, nil
}

// AddCheckpoint implements commitments.Store. Its lock keeps a rewind from replacing the
// leaves before the checkpoint is committed.
func (c *Commitments) AddCheckpoint(ctx context.Context, generation uint64, p commitments.Checkpoint) error {
	_, err := c.store.Pool.Exec(ctx, `WITH present AS MATERIALIZED (
			SELECT pool FROM commitment_index WHERE pool = $1 AND generation = $2 AND leaves >= $3 FOR SHARE)
		INSERT INTO commitment_checkpoints (pool, last_leaf, frontier) SELECT pool, $3 - 1, $4 FROM present ON CONFLICT DO NOTHING`,
		c.pool.Bytes(), generation, p.Leaves, p.Frontier)
	if err != nil {
		return unavailable(fmt.Errorf("add a checkpoint of the commitment index: %w", err))
	}
	return nil
}

// DropCheckpoints implements commitments.Store.
func (c *Commitments) DropCheckpoints(ctx context.Context) error {
	if _, err := c.store.Pool.Exec(ctx, `DELETE FROM commitment_checkpoints WHERE pool = $1`, c.pool.Bytes()); err != nil {
		return unavailable(fmt.Errorf("drop the checkpoints of the commitment index: %w", err))
	}
	return nil
}

// IndexedPools lists the pools that have a commitment index.
func (s *Store) IndexedPools(ctx context.Context) ([]solana.PublicKey, error) {
	rows, err := s.Pool.Query(ctx, `SELECT pool FROM commitment_index ORDER BY pool`)
	if err != nil {
		return nil, unavailable(fmt.Errorf("list commitment indexes: %w", err))
	}
	pools, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (solana.PublicKey, error) {
		var address []byte
		err := row.Scan(&address)
		return solana.PublicKeyFromBytes(address), err
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("list commitment indexes: %w", err))
	}
	return pools, nil
}
