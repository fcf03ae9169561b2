package chainwatch

import "time"

const (
	// defaultInterval is the time between two checks of a pool that declares none.
	defaultInterval = time.Minute
	// confirmAfter is how soon a change for the worse is checked again, before it is
	// reported. The pauses after further failures double.
	confirmAfter = 5 * time.Second
	// jitter is the fraction by which an interval varies, so that pools are not all
	// checked at the same time.
	jitter = 0.1
)

// pause is the time to the next check. A chain that does not answer is asked again soon,
// because its node or DNS name may be about to appear; the pauses grow with each failure. A
// change for the worse is also checked again soon.
func (w *Watcher) pause(p *pool) time.Duration {
	d := p.query.Interval
	if p.failures > 0 || p.unconfirmed {
		d = min(d, confirmAfter<<min(max(p.failures-1, 0), 8))
	}
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*w.o.Random()))
}
