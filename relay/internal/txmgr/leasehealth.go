package txmgr

import (
	"context"
	"sync"
	"time"
)

// freeDeadProcesses frees the leases of dead processes. A process that has just regained its
// database connection frees none for the duration of a lease, so that the other processes have time
// to reconnect too.
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
