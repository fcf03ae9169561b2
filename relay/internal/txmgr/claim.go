package txmgr

import (
	"context"
	"time"
)

const (
	// claimLimit is the largest number of rows that one claim takes.
	claimLimit = 64
	// landedLimit is the largest number of landed rows that one claim takes.
	landedLimit = 256
)

// claimLoop claims due rows of a queue at each notification and once per Timing.Sweep. The main
// queue's loop also claims landed rows once per Timing.Sweep.
func (m *Manager) claimLoop(ctx context.Context, l *Queue) {
	tick := time.NewTicker(m.Timing.Sweep)
	defer tick.Stop()
	for {
		ticked := false
		select {
		case <-m.stopping.Done():
			return
		case <-l.due:
		case <-tick.C:
			ticked = true
		}
		if !m.isPaused(l) {
			for m.claimBatch(ctx, l) && ctx.Err() == nil {
			}
		} else if ticked { // not at a notification: only a probe
			m.claimBatch(ctx, l)
		}
		if ticked && l == m.main() {
			for m.claimLanded(ctx) && ctx.Err() == nil {
			}
		}
	}
}

// claimBatch claims rows of a queue, at most as many as the queue has capacity for. The result is
// true if there may be more rows to claim.
func (m *Manager) claimBatch(ctx context.Context, l *Queue) bool {
	claim, limit, main := m.claimFunc(l), claimLimit, l == m.main()
	if main { // most of the capacity stays free during the database call, for newly accepted jobs
		limit = min(claimLimit, max(1, l.Capacity/4))
	}
	acquired := l.inUse.acquire(limit)
	if acquired == 0 {
		if main {
			m.rowsMayRemain.Store(true)
		}
		return false
	}
	call, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	claimed, err := claim(call, m.Worker, acquired)
	for range acquired - len(claimed) {
		l.inUse.release()
	}
	if err != nil {
		if ctx.Err() == nil {
			m.Log.WarnContext(ctx, "claiming due submissions failed", "error", err)
		}
		return false
	}
	if main {
		m.rowsMayRemain.Store(len(claimed) == acquired)
	}
	if len(claimed) > 0 {
		m.Observer.Lease("claimed", len(claimed))
	}
	for _, j := range claimed {
		if main && len(j.Live)+len(j.Dead) == 0 && j.Tries == 0 && j.Hold == "" {
			m.Observer.Stage("queue", m.Now().Sub(j.CreatedAt))
		}
		m.start(ctx, l, j)
	}
	return len(claimed) == acquired
}

// claimLanded claims landed jobs that no process tracks. The result is true if there may be more
// of them.
func (m *Manager) claimLanded(ctx context.Context) bool {
	call, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	claimed, err := m.Store.ClaimLanded(call, m.Worker, landedLimit)
	if err != nil {
		if ctx.Err() == nil {
			m.Log.WarnContext(ctx, "claiming landed submissions failed", "error", err)
		}
		return false
	}
	for _, j := range claimed {
		m.tracker.adoptLanded(j)
	}
	return len(claimed) == landedLimit
}
