package store

import (
	"context"
	"encoding/hex"
	"time"
)

// indexLockWait is how long a pass waits for another process that reads blocks.
const indexLockWait = 500 * time.Millisecond

// Lock implements commitments.Store. A pass that takes longer than ten seconds, such as the first one,
// loses the lock, and then another process may read the same blocks. The release before has the same lock.
func (c *Commitments) Lock(ctx context.Context) (unlock func()) {
	_, unlock = c.store.lock(ctx, "index "+hex.EncodeToString(c.pool.Bytes()), indexLockWait)
	return unlock
}
