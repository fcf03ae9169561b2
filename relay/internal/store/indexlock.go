package store

import (
	"context"
	"encoding/hex"
)

// Lock implements commitments.Store. A pass that takes longer than ten seconds, such as the first one,
// loses the lock, and then another process may read the same blocks.
func (c *Commitments) Lock(ctx context.Context) (unlock func()) {
	_, unlock = c.store.takeTurn(ctx, "relaypool index "+hex.EncodeToString(c.pool.Bytes()))
	return unlock
}
