package chain

import (
	"context"
	"fmt"
	"time"
)

// ReadOnce lets the processes of a fleet read something once for all of them. Only one process at a time reads
// what has that name. ReadOnce first calls use with the value that a process has read before; the read began
// at most age ago. If there is no value, or use returns false, ReadOnce calls read, and shares what
// that returns, unless it is nil. If another process reads for long, or the database fails, ReadOnce calls read too.
type ReadOnce func(ctx context.Context, name string, use func(value []byte, age time.Duration) bool, read func(context.Context) (value []byte))

// readForFleet calls read, unless another process of the fleet has read the same from the same chain, and use
// accepts what it shares.
func (e *Endpoints) readForFleet(ctx context.Context, what string, use func(value []byte, age time.Duration) bool, read func(context.Context) (value []byte)) {
	genesis := e.knownGenesis()
	if e.readOnce == nil || genesis.IsZero() {
		read(ctx)
		return
	}
	// Processes with other endpoints may use the same database while their settings change.
	e.readOnce(ctx, fmt.Sprintf("%s of chain %s, several endpoints: %t", what, genesis, e.hasSeveral()), use, read)
}
