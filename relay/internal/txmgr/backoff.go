package txmgr

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"
)

// deferJob releases the lease. The job is due again after a delay, which depends on the cause.
func (m *Manager) deferJob(ctx context.Context, w *entry, cause error) {
	defer m.tracker.drop(w)
	if errors.Is(cause, ErrLeaseLost) {
		m.Observer.Lease("lost", 1)
		m.Log.DebugContext(ctx, "lease lost to another process", "request_id", w.j.ID)
		m.release(ctx, w, 0, "") // this process may still own the lease: perhaps only its heartbeat was late
		return
	}
	reason, level, delay := "", slog.LevelInfo, m.backoff(w.j.Tries)
	if d := (*Deferral)(nil); errors.As(cause, &d) {
		reason, delay = d.Reason, cmp.Or(d.Delay, m.Timing.Hold)
		firstLevel := slog.LevelInfo
		if d.Fault {
			m.Observer.Attempt("held")
			firstLevel = slog.LevelWarn
			m.pauseFor(ctx, d)
		}
		if level = slog.LevelDebug; w.j.Hold != reason {
			level = firstLevel
		}
		if !w.j.queue.pausable() {
			time.AfterFunc(delay, w.j.queue.ClaimSoon)
		}
	}
	m.Log.Log(ctx, level, "submission deferred", "request_id", w.j.Row.RequestID(), "delay", delay, "held", reason, "error", cause)
	m.release(ctx, w, delay, reason)
}

func (m *Manager) backoff(tries int) time.Duration {
	d := m.Timing.Backoff
	for range tries {
		if d *= 2; d >= m.Timing.BackoffCap {
			return m.Timing.BackoffCap
		}
	}
	return d
}
