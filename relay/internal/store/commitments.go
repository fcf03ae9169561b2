package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/batch"
	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// Commitments is the commitment index of one pool: its stored leaves and its position. It
// implements commitments.Store.
type Commitments struct {
	store  *Store
	pool   solana.PublicKey
	newest *batch.Queue[struct{}, newestLeaf]
}

// Commitments returns the commitment index of a pool.
func (s *Store) Commitments(pool solana.PublicKey) *Commitments {
	c := &Commitments{store: s, pool: pool}
	c.newest = queueOf(c.readNewest)
	return c
}

// Position implements commitments.Store.
func (c *Commitments) Position(ctx context.Context) (p commitments.Position, err error) {
	err = c.store.Pool.QueryRow(ctx, `SELECT leaves, published, slot, generation FROM commitment_index WHERE pool = $1`, c.pool.Bytes()).
		Scan(&p.Leaves, &p.Published, &p.Slot, &p.Generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return commitments.Position{}, nil
	}
	if err != nil {
		return p, unavailable(fmt.Errorf("read position of the commitment index: %w", err))
	}
	return p, nil
}

// Append implements commitments.Store.
func (c *Commitments) Append(ctx context.Context, from commitments.Position, leaves []commitments.IndexedCommitment, slot uint64) error {
	return c.store.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO commitment_index (pool) VALUES ($1) ON CONFLICT DO NOTHING`, c.pool.Bytes()); err != nil {
			return fmt.Errorf("create position of the commitment index: %w", err)
		}
		to := from
		to.Leaves, to.Slot = from.Leaves+uint64(len(leaves)), slot
		if err := c.move(ctx, tx, from, to); err != nil {
			return err
		}
		rows := make([][]any, len(leaves))
		for i, l := range leaves {
			rows[i] = []any{c.pool.Bytes(), int64(from.Leaves) + int64(i), l.Commitment[:], int64(l.Slot)} //nolint:gosec // indices are below 2^32, slots below 2^63
		}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"commitments"}, []string{"pool", "leaf_index", "commitment", "slot"}, pgx.CopyFromRows(rows))
		if err != nil {
			return fmt.Errorf("append leaves: %w", err)
		}
		return nil
	})
}

// move changes the position, unless another pod has changed it since it was
// read.
func (c *Commitments) move(ctx context.Context, tx pgx.Tx, from, to commitments.Position) error {
	tag, err := tx.Exec(ctx, `UPDATE commitment_index SET leaves = $6, published = $7, slot = $8, generation = $9
		WHERE pool = $1 AND leaves = $2 AND published = $3 AND slot = $4 AND generation = $5`,
		c.pool.Bytes(), from.Leaves, from.Published, from.Slot, from.Generation, to.Leaves, to.Published, to.Slot, to.Generation)
	if err != nil {
		return fmt.Errorf("change position of the commitment index: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return commitments.ErrMoved
	}
	return nil
}

// Publish implements commitments.Store.
func (c *Commitments) Publish(ctx context.Context, from commitments.Position, published uint64) error {
	to := from
	to.Published = published
	return c.store.inTx(ctx, func(tx pgx.Tx) error { return c.move(ctx, tx, from, to) })
}

// Rewind implements commitments.Store.
func (c *Commitments) Rewind(ctx context.Context, from commitments.Position, slot uint64) error {
	return c.store.inTx(ctx, func(tx pgx.Tx) error {
		to := commitments.Position{Slot: slot, Generation: from.Generation + 1}
		err := tx.QueryRow(ctx, `SELECT COALESCE(min(leaf_index), $3) FROM commitments WHERE pool = $1 AND slot > $2`,
			c.pool.Bytes(), slot, from.Leaves).Scan(&to.Leaves)
		if err != nil {
			return fmt.Errorf("find leaves to read again: %w", err)
		}
		to.Published = min(from.Published, to.Leaves)
		if err := c.move(ctx, tx, from, to); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM commitments WHERE pool = $1 AND leaf_index >= $2`, c.pool.Bytes(), to.Leaves); err != nil {
			return fmt.Errorf("delete leaves: %w", err)
		}
		return nil
	})
}

// Read implements commitments.Store.
func (c *Commitments) Read(ctx context.Context, generation, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
	// One statement reads one snapshot, so leaves and generation belong together.
	rows, err := c.store.Pool.Query(ctx, `SELECT commitment, commitments.slot FROM commitments JOIN commitment_index USING (pool)
		WHERE pool = $1 AND generation = $2 AND leaf_index >= $3 ORDER BY leaf_index LIMIT $4`, c.pool.Bytes(), generation, from, limit)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read leaves: %w", err))
	}
	var out []commitments.IndexedCommitment
	var commitment []byte
	var l commitments.IndexedCommitment
	_, err = pgx.ForEachRow(rows, []any{&commitment, &l.Slot}, func() error {
		l.Commitment = [32]byte(commitment)
		out = append(out, l)
		return nil
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("read leaves: %w", err))
	}
	if len(out) == 0 { // the generation has changed, or no leaf has an index of at least from
		return nil, commitments.ErrMoved
	}
	return out, nil
}

// Find implements commitments.Store.
func (c *Commitments) Find(ctx context.Context, commitments [][32]byte) (map[[32]byte]uint64, error) {
	rows, err := c.store.Pool.Query(ctx, `SELECT commitment, max(leaf_index) FROM commitments JOIN commitment_index USING (pool)
		WHERE pool = $1 AND commitment = ANY($2) AND published > 0 GROUP BY commitment`, c.pool.Bytes(), byteSlices(commitments))
	if err != nil {
		return nil, unavailable(fmt.Errorf("find leaves: %w", err))
	}
	found := make(map[[32]byte]uint64, len(commitments))
	var commitment []byte
	var index uint64
	_, err = pgx.ForEachRow(rows, []any{&commitment, &index}, func() error {
		found[[32]byte(commitment)] = index
		return nil
	})
	if err != nil {
		return nil, unavailable(fmt.Errorf("find leaves: %w", err))
	}
	return found, nil
}
