package txmgr

import "time"

// Timing has the manager's intervals and timeouts.
type Timing struct {
	// Lease is how long a process without a heartbeat keeps its jobs.
	Lease time.Duration
	// Poll is the interval at which signatures are polled.
	Poll time.Duration
	// Sweep is the interval of the claim loops: due rows are claimed at this interval even
	// without a notification. It has nothing to do with the command `relay sweep`.
	Sweep time.Duration
	// Backoff is the delay after the first temporary failure. Each further failure doubles the
	// delay, up to BackoffCap.
	Backoff, BackoffCap time.Duration
	// Hold is the delay after which a held job is tried again, unless its Deferral has another
	// Delay.
	Hold time.Duration
}

// DefaultTiming suits slots of 200 ms: Poll is the duration of two slots.
func DefaultTiming() Timing {
	return Timing{
		Lease: 5 * time.Second, Poll: 400 * time.Millisecond, Sweep: time.Second,
		Backoff: 250 * time.Millisecond, BackoffCap: 10 * time.Second, Hold: 2 * time.Second,
	}
}
