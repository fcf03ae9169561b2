package txmgr

import "time"

// Timing is the manager's intervals and timeouts.
type Timing struct {
	// Lease is how long a process without a heartbeat keeps its jobs.
	Lease time.Duration
	// Poll is the interval at which signatures are polled.
	Poll time.Duration
	// Sweep is the interval at which due rows are claimed without a notification.
	Sweep time.Duration
	// Backoff is the pause after the first temporary failure. Each further failure doubles the
	// pause, up to BackoffCap.
	Backoff, BackoffCap time.Duration
	// Hold is the delay after which a held job is tried again, unless its Deferral names
	// another.
	Hold time.Duration
}

// DefaultTiming suits slots of 200 ms: Poll is the duration of two slots.
func DefaultTiming() Timing {
	return Timing{
		Lease: 5 * time.Second, Poll: 400 * time.Millisecond, Sweep: time.Second,
		Backoff: 250 * time.Millisecond, BackoffCap: 10 * time.Second, Hold: 2 * time.Second,
	}
}
