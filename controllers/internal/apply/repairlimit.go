package apply

import (
	"time"

	"golang.org/x/time/rate"
)

// An object is repaired at most repairBurst times in a row, and then once per repairInterval. So
// two writers that undo each other's changes do not load the API server.
const (
	repairBurst    = 5
	repairInterval = 10 * time.Second
)

func newRepairLimiter() *rate.Limiter {
	return rate.NewLimiter(rate.Every(repairInterval), repairBurst)
}

// contested reports whether the object was repaired too often. A later pass then repairs it.
func (p *pass) contested(t target, now time.Time) bool {
	reservation := t.entry.repairLimiter.ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay <= 0 {
		return false
	}
	reservation.CancelAt(now)
	p.result.Contested = append(p.result.Contested, t.ref)
	p.result.retryWithin(delay)
	return true
}
