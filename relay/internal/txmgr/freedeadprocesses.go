package txmgr

import (
	"context"
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
