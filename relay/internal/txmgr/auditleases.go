package txmgr

import "context"

// auditLeases compares the leases that this process tracks with those in the database. If two
// audits in a row find a lease only in the database, the answer to the write that claimed it was
// lost, and the lease is released. Otherwise no process would ever work on that row.
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
