package txmgr

import (
	"context"
	"time"
)

const (
	// claimLimit is how many rows one claim takes up.
	claimLimit = 64
	// landedLimit is how many landed ones.
	landedLimit = 256
)

// claimLoop takes up what is due of a lane whenever it is told of something, and at
// each sweep; with the main lane's sweeps what landed, too.
func (m *Manager) claimLoop(ctx context.Context, l *Lane) {
	tick := time.NewTicker(m.Timing.Sweep)
	defer tick.Stop()
	for {
		swept := false
		select {
		case <-m.stopping.Done():
			return
		case <-l.due:
		case <-tick.C:
			swept = true
		}
		if !m.isPaused(l) {
			for m.claimBatch(ctx, l) && ctx.Err() == nil {
			}
		} else if swept {
			// Some are looked at all the same, in turn: what does not wait for the same
			// reason, such as a dead process's transactions, must not wait with the rest.
			m.claimBatch(ctx, l)
		}
		if swept && l == m.main() {
			for m.claimLanded(ctx) && ctx.Err() == nil {
			}
		}
	}
}

// isPaused reports whether the lane takes nothing up.
func (m *Manager) isPaused(l *Lane) bool { return l.pausable() && m.paused.reason() != "" }

// claimBatch claims as much as there are places for, and while the queue is paused one
// of what waits, as a probe, beside what may be on the chain; more says that
// there may be more to take.
func (m *Manager) claimBatch(ctx context.Context, l *Lane) (more bool) {
	claim, limit, main := l.Claim, claimLimit, l == m.main()
	if m.isPaused(l) {
		claim = l.Probe
	}
	if main { // most places stay free while the database answers, for what is accepted meanwhile
		limit = min(claimLimit, max(1, l.Places/4))
	}
	places := l.places.acquire(limit)
	if places == 0 {
		if main {
			m.mayClaimMore.Store(true)
		}
		return false
	}
	call, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	claimed, err := claim(call, m.Worker, places)
	for range places - len(claimed) {
		l.places.release()
	}
	if err != nil {
		if ctx.Err() == nil {
			m.Log.WarnContext(ctx, "claiming due submissions failed", "error", err)
		}
		return false
	}
	if main {
		m.mayClaimMore.Store(len(claimed) == places)
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
	return len(claimed) == places
}

// claimLanded claims landed jobs that nobody watches.
func (m *Manager) claimLanded(ctx context.Context) (more bool) {
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
