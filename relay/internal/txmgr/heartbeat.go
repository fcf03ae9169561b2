package txmgr

import (
	"context"
	"time"
)

// heartbeat renews this process's leases.
func (m *Manager) heartbeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease/3)
	defer cancel()
	began := time.Now()
	lapsed, err := m.Store.Heartbeat(ctx, Worker{ID: m.Worker, PausedBy: m.paused.reason()}, m.Timing.Lease)
	if err != nil {
		// Of several timeouts in a row, only the first after a success is logged.
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
