package txmgr

import (
	"context"
	"errors"
	"time"
)

// handOver releases all leases in one statement. The attempts remain, and the next owner of a
// row resolves them first.
func (m *Manager) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	n, err := m.Store.ReleaseAll(ctx, m.Worker)
	if err != nil {
		m.Log.WarnContext(ctx, "leases not released; they expire by themselves", "after", m.Timing.Lease, "error", err)
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

// release releases the entry's lease.
func (m *Manager) release(ctx context.Context, w *entry, delay time.Duration, reason string) {
	// A cancelled step still has to release its lease, before the process ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.Timing.Lease/2)
	defer cancel()
	if err := m.Store.Release(ctx, w.j.Lease, delay, reason); err != nil && !errors.Is(err, ErrLeaseLost) {
		m.Log.WarnContext(ctx, "lease not released; the audit will find it", "request_id", w.j.ID, "error", err)
	}
}
