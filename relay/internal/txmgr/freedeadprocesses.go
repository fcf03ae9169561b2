package txmgr

import (
	"context"
	"sync"
	"time"
)

// freeDeadProcesses frees the leases of dead processes. A process that has just regained
// its database connection first gives the others time to reconnect.
func (m *Manager) freeDeadProcesses(ctx context.Context) {
	if !m.leaseHealth.validFor(time.Now(), m.Timing.Lease) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	freed, err := m.Store.FreeDeadProcesses(ctx)
	if err != nil {
		m.Log.WarnContext(ctx, "looking for dead processes failed", "error", err)
		return
	}
	if freed > 0 {
		m.Observer.Lease("reaped", freed)
		m.Log.WarnContext(ctx, "leases of a dead process released", "submissions", freed)
		m.ClaimSoon()
		m.NotifyOthers()
	}
}

// leaseHealth records since when this process's leases have been valid.
type leaseHealth struct {
	mu            sync.Mutex
	since         time.Time
	renewedBefore bool
}

// renewed records a successful heartbeat, and reports whether an earlier one had succeeded.
func (a *leaseHealth) renewed(now time.Time, lapsed bool) (renewedEarlier bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if lapsed || a.since.IsZero() {
		a.since = now
	}
	renewedEarlier, a.renewedBefore = a.renewedBefore, true
	return renewedEarlier
}

// failed records a heartbeat that failed.
func (a *leaseHealth) failed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Time{}
}

// validFor reports whether the leases have been valid for d.
func (a *leaseHealth) validFor(now time.Time, d time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since.IsZero() && now.Sub(a.since) >= d
}
