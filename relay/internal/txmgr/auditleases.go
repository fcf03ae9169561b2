package txmgr

import "context"

// auditLeases compares the leases that this process tracks with those in the database. If two
// audits in a row find a lease only in the database, the answer to the write that made the lease
// was lost, or its release failed. auditLeases releases it, so that the row is claimed again.
func (m *Manager) auditLeases(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	trackedBefore := m.tracker.leases()
	recorded, err := m.Store.Leases(ctx, m.Worker)
	if err != nil {
		m.Log.DebugContext(ctx, "lease audit failed", "error", err)
		return
	}
	recordedSet, suspects := leaseSet(recorded), map[Lease]bool{}
	trackedAfter := m.tracker.leases()
	for _, l := range recorded {
		switch {
		case trackedAfter[l]:
		case !m.orphanSuspects[l]:
			suspects[l] = true
		default:
			if err := m.Store.Release(ctx, l, 0, ""); err == nil {
				m.Observer.Lease("orphaned", 1)
				m.Log.WarnContext(ctx, "orphaned lease released", "request_id", l.ID)
				m.ClaimSoon()
			}
		}
	}
	m.orphanSuspects = suspects
	for l := range trackedBefore {
		if !recordedSet[l] {
			m.tracker.dropLease(l)
		}
	}
}
