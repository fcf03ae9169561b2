package pooltest

import (
	"sync/atomic"
	"time"
)

// Clock is one that runs as the machine's does, and that a test sets forward.
// The zero Clock is the machine's own.
type Clock struct{ ahead atomic.Int64 }

// Now is the time by the clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Advance sets the clock forward.
func (c *Clock) Advance(by time.Duration) { c.ahead.Add(int64(by)) }
