package pooltest

import (
	"sync/atomic"
	"time"
)

// Clock runs like the machine's clock, and a test can set it forward. The zero Clock shows
// the machine's time.
type Clock struct{ ahead atomic.Int64 }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Advance sets the clock forward.
func (c *Clock) Advance(by time.Duration) { c.ahead.Add(int64(by)) }
