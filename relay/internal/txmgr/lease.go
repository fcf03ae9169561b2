package txmgr

import (
	"context"
	"errors"
	"sync"
	"time"
)

// heartbeat renews this process's leases.
func (m *Manager) heartbeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease/3)
	defer cancel()
	began := time.Now()
	lapsed, err := m.Store.Heartbeat(ctx, Worker{ID: m.Worker, PausedBy: m.paused.reason()}, m.Timing.Lease)
	if err != nil {
		if ctx.Err() == nil || m.leaseHealth.validFor(began, 0) {
			m.Log.WarnContext(ctx, "lease heartbeat failed", "error", err)
		}
		m.leaseHealth.failed()
		return
	}
	if m.leaseHealth.renewed(began, lapsed) && lapsed {
		m.Observer.Lease("lapsed", 1)
		m.Log.WarnContext(ctx, "lapsed leases renewed; other processes may have claimed submissions")
	}
}

// auditLeases compares the leases that this process tracks with those in the database. If
// two audits in a row find a lease only in the database, the answer to its write was lost.
// Without the audit no process would ever work on that row.
func (m *Manager) auditLeases(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	tracked := m.tracker.leases()
	recorded, err := m.Store.Leases(ctx, m.Worker)
	if err != nil {
		m.Log.DebugContext(ctx, "lease audit failed", "error", err)
		return
	}
	recordedSet, orphaned := leaseSet(recorded), map[Lease]bool{}
	trackedAfter := m.tracker.leases()
	for _, l := range recorded {
		switch {
		case trackedAfter[l]:
		case !m.orphaned[l]:
			orphaned[l] = true
		default:
			if err := m.Store.Release(ctx, l, 0, ""); err == nil {
				m.Observer.Lease("orphaned", 1)
				m.Log.WarnContext(ctx, "orphaned lease released", "request_id", l.ID)
				m.ClaimSoon()
			}
		}
	}
	m.orphaned = orphaned
	for l := range tracked {
		if !recordedSet[l] {
			m.tracker.dropLease(l)
		}
	}
}

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

// handOver releases all leases at once. The attempts remain: the next owner of a row
// resolves them first.
func (m *Manager) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	n, err := m.Store.ReleaseAll(ctx, m.Worker)
	if err != nil {
		m.Log.WarnContext(ctx, "leases not released; they lapse by themselves", "error", err)
		return
	}
	m.Observer.Lease("handed_over", n)
	if n == 0 {
		return
	}
	m.Log.InfoContext(ctx, "submissions handed over", "submissions", n)
	if err := m.Store.NotifyDue(ctx); err != nil {
		m.Log.DebugContext(ctx, "notifying other processes failed; they poll by themselves", "error", err)
	}
}

// release releases the lease.
func (m *Manager) release(ctx context.Context, w *entry, delay time.Duration, reason string) {
	// A cancelled step still has to release its lease, while there is time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.Timing.Lease/2)
	defer cancel()
	if err := m.Store.Release(ctx, w.j.Lease, delay, reason); err != nil && !errors.Is(err, ErrLeaseLost) {
		m.Log.WarnContext(ctx, "lease not released; the audit will find it", "request_id", w.j.ID, "error", err)
	}
}

// leaseHealth records how long this process's leases have been valid.
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
