package refs

import "time"

const (
	// DefaultInterval is the time between two readings of a RelayPool's objects.
	DefaultInterval = time.Minute
	// jitter is the fraction by which the interval varies. It spreads the readings of
	// RelayPools that were created together.
	jitter = 0.1
	// problemFactor divides the interval while an object is missing, invalid or unreadable,
	// because somebody may be about to correct it.
	problemFactor = 4
)

// interval returns the time until the next reading.
func (r *Resolver) interval(f Facts) time.Duration {
	interval := r.Interval
	if !f.Complete() || len(f.Unread) > 0 {
		interval /= problemFactor
	}
	return time.Duration(float64(interval) * (1 - jitter + 2*jitter*r.Random()))
}
