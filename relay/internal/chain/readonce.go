package chain

import (
	"context"
	"time"
)

// ReadOnce lets the processes of a fleet read something once for all of them. Only one process at a time reads
// what has that name. ReadOnce first calls use with the value that a process has read before; the read began
// at most age ago. If there is no value, or use returns false, ReadOnce calls read, and shares what
// that returns, unless it is nil. If another process reads for long, or the database fails, ReadOnce calls read too.
type ReadOnce func(ctx context.Context, name string, use func(value []byte, age time.Duration) bool, read func(context.Context) (value []byte))
