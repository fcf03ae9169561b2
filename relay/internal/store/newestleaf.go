package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

type newestLeaf struct {
	position commitments.Position
	leaf     [32]byte
}

// Newest returns the position, and the last published leaf. It is zero when none is published.
// Every request for leaves asks for it, so those that wait share a read.
func (c *Commitments) Newest(ctx context.Context) (commitments.Position, [32]byte, error) {
	n, err := c.newest.Do(ctx, struct{}{})
	return n.position, n.leaf, err
}

// readNewest reads once for all calls.
func (c *Commitments) readNewest(ctx context.Context, calls []struct{}) ([]newestLeaf, error) {
	var leaf []byte
	var n newestLeaf
	p := &n.position
	err := c.store.Pool.QueryRow(ctx, `SELECT leaves, published, i.slot, generation, commitment FROM commitment_index i
		LEFT JOIN commitments c ON c.pool = i.pool AND leaf_index = published - 1 WHERE i.pool = $1`, c.pool.Bytes()).
		Scan(&p.Leaves, &p.Published, &p.Slot, &p.Generation, &leaf)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, unavailable(fmt.Errorf("read the newest leaf: %w", err))
	}
	copy(n.leaf[:], leaf)
	return slices.Repeat([]newestLeaf{n}, len(calls)), nil
}
