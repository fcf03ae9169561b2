package txmgr

import (
	"context"
	"slices"
)

// The hooks of this file let a test drive an engine by hand, one move at a
// time, where Run would let its loops decide when.

// BeatOnce renews the process's leases once.
func (e *Manager) BeatOnce(ctx context.Context) { e.heartbeat(ctx) }

// AuditOnce compares once the process's leases with those in the database.
func (e *Manager) AuditOnce(ctx context.Context) { e.auditLeases(ctx) }

// ReapOnce frees the leases of dead processes once, as a process whose own leases have been good
// for long enough.
func (e *Manager) ReapOnce(ctx context.Context) {
	e.leaseHealth.mu.Lock()
	if !e.leaseHealth.since.IsZero() {
		e.leaseHealth.since = e.leaseHealth.since.Add(-e.Timing.Lease)
	}
	e.leaseHealth.mu.Unlock()
	e.freeDeadProcesses(ctx)
}

// ClaimOnce claims due submissions once, and ClaimLandedOnce landed ones.
func (e *Manager) ClaimOnce(ctx context.Context)       { e.claimBatch(ctx, e.main()) }
func (e *Manager) ClaimLandedOnce(ctx context.Context) { e.claimLanded(ctx) }

// PollOnce polls once for everything that is due, including landed jobs.
func (e *Manager) PollOnce(ctx context.Context) { e.tracker.poll(ctx, 0, false) }

// FlushOnce writes the outcomes that are queued.
func (e *Manager) FlushOnce(ctx context.Context) { e.recorder.flush(ctx) }

// HandOverOnce releases all leases of the process, as the end of Run does.
func (e *Manager) HandOverOnce(ctx context.Context) { e.handOver(ctx) }

// WaitSteps waits until every step that was started has ended.
func (e *Manager) WaitSteps() {
	e.steps.Wait()
	_ = e.tracker.sends.Wait() // a send's errors are logged where it is made
}

// Quiet reports whether nothing of the process runs but the steps of the given
// leases.
func (e *Manager) Quiet(but ...Lease) bool {
	t := e.tracker
	_ = t.sends.Wait() // a send's errors are logged where it is made
	if !t.resolving.TryLock() {
		return false
	}
	t.resolving.Unlock()
	e.recorder.mu.Lock()
	queued := slices.Clone(e.recorder.finalized)
	var handed []*entry
	for _, l := range e.recorder.landed {
		handed = append(handed, l.w)
	}
	e.recorder.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.entries {
		if w.phase == working && !slices.Contains(but, w.j.Lease) {
			return false
		}
		// Its step is between dropping it and queueing its outcome.
		if w.phase == recording && !slices.Contains(handed, w) {
			return false
		}
	}
	for _, w := range t.landed {
		if w.busy && !slices.Contains(queued, w) {
			return false
		}
	}
	return true
}
