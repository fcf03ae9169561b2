package txmgr

import (
	"sync"
	"time"
)

// leaseHealth records since when this process's leases have been valid.
type leaseHealth struct {
	mu            sync.Mutex
	since         time.Time
	renewedBefore bool
}

// renewed records a successful heartbeat, and reports whether an earlier heartbeat had succeeded.
func (a *leaseHealth) renewed(now time.Time, lapsed bool) (notFirst bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if lapsed || a.since.IsZero() {
		a.since = now
	}
	notFirst, a.renewedBefore = a.renewedBefore, true
	return notFirst
}

// failed records a heartbeat that failed.
func (a *leaseHealth) failed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Time{}
}

// validFor reports whether the leases have been valid for d or longer.
func (a *leaseHealth) validFor(now time.Time, d time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since.IsZero() && now.Sub(a.since) >= d
}
