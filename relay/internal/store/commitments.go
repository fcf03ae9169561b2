package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// Commitments is one pool's index. It implements commitments.Store.
type Commitments struct {
	store *Store
	pool  solana.PublicKey
}

// Commitments gives the index of a pool.
func (s *Store) Commitments(pool solana.PublicKey) *Commitments { return &Commitments{s, pool} }

// Position implements commitments.Store.
func (c *Commitments) Position(ctx context.Context) (p commitments.Position, err error) {
	err = c.store.Pool.QueryRow(ctx, `SELECT leaves, published, slot FROM commitment_index WHERE pool = $1`, c.pool.Bytes()).
		Scan(&p.Leaves, &p.Published, &p.Slot)
	if errors.Is(err, pgx.ErrNoRows) {
		return commitments.Position{}, nil
	}
	if err != nil {
		return p, unavailable(fmt.Errorf("read index position: %w", err))
	}
	return p, nil
}

// Append implements commitments.Store.
func (c *Commitments) Append(ctx context.Context, from commitments.Position, leaves []commitments.Placed, slot uint64) error {
	return c.store.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO commitment_index (pool) VALUES ($1) ON CONFLICT DO NOTHING`, c.pool.Bytes()); err != nil {
			return fmt.Errorf("begin index: %w", err)
		}
		to := commitments.Position{Leaves: from.Leaves + uint64(len(leaves)), Published: from.Published, Slot: slot}
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

// move changes the position from what it is thought to be: another pod may
// have changed it since.
func (c *Commitments) move(ctx context.Context, tx pgx.Tx, from, to commitments.Position) error {
	tag, err := tx.Exec(ctx, `UPDATE commitment_index SET leaves = $5, published = $6, slot = $7
		WHERE pool = $1 AND leaves = $2 AND published = $3 AND slot = $4`,
		c.pool.Bytes(), from.Leaves, from.Published, from.Slot, to.Leaves, to.Published, to.Slot)
	if err != nil {
		return fmt.Errorf("move index: %w", err)
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

// Truncate implements commitments.Store.
func (c *Commitments) Truncate(ctx context.Context, from commitments.Position, leaves uint64) error {
	return c.store.inTx(ctx, func(tx pgx.Tx) error {
		to := commitments.Position{Leaves: leaves, Published: min(from.Published, leaves)}
		err := tx.QueryRow(ctx, `SELECT COALESCE(max(slot), 0) FROM commitments WHERE pool = $1 AND leaf_index < $2`, c.pool.Bytes(), leaves).Scan(&to.Slot)
		if err != nil {
			return fmt.Errorf("find slot to read again from: %w", err)
		}
		if err := c.move(ctx, tx, from, to); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM commitments WHERE pool = $1 AND leaf_index >= $2`, c.pool.Bytes(), leaves); err != nil {
			return fmt.Errorf("truncate index: %w", err)
		}
		return nil
	})
}

// Read implements commitments.Store.
func (c *Commitments) Read(ctx context.Context, from, to uint64, limit int) ([]commitments.Leaf, error) {
	rows, err := c.store.Pool.Query(ctx, `SELECT leaf_index, commitment FROM commitments
		WHERE pool = $1 AND leaf_index >= $2 AND leaf_index < $3 ORDER BY leaf_index LIMIT $4`, c.pool.Bytes(), from, to, limit)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read leaves: %w", err))
	}
	var out []commitments.Leaf
	var index uint64
	var commitment []byte
	_, err = pgx.ForEachRow(rows, []any{&index, &commitment}, func() error {
		out = append(out, commitments.Leaf{Index: index, Commitment: [32]byte(commitment)})
		return nil
	})
	return out, unavailable(err)
}

// Find implements commitments.Store.
func (c *Commitments) Find(ctx context.Context, commitment [32]byte) (index uint64, ok bool, err error) {
	err = c.store.Pool.QueryRow(ctx, `SELECT leaf_index FROM commitments WHERE pool = $1 AND commitment = $2 ORDER BY leaf_index DESC LIMIT 1`,
		c.pool.Bytes(), commitment[:]).Scan(&index)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, unavailable(fmt.Errorf("find leaf: %w", err))
	}
	return index, true, nil
}
