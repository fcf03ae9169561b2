package txmgr

import (
	"context"
	"time"
)

// notifyInterval is the minimum time between two notifications.
const notifyInterval = 50 * time.Millisecond

// notifyLoop notifies other processes whenever NotifyOthers was called, until ctx ends.
func (m *Manager) notifyLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.othersNeeded:
		}
		call, cancel := context.WithTimeout(ctx, m.Timing.Lease)
		if err := m.Store.NotifyDue(call); err != nil && ctx.Err() == nil {
			m.Log.DebugContext(ctx, "notifying other processes failed; they poll by themselves", "error", err)
		}
		cancel()
		if !sleep(ctx, notifyInterval) {
			return
		}
	}
}

// NotifyOthers notifies other processes that jobs are due, because this process may lack the
// capacity for them.
func (m *Manager) NotifyOthers() { signal(m.othersNeeded) }
