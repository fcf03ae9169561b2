package txmgr

import (
	"context"
	"slices"
)

// With the hooks of this file a test runs the single actions of a manager's
// loops, in place of Run.

// HeartbeatOnce renews the process's leases once.
func (e *Manager) HeartbeatOnce(ctx context.Context) { e.heartbeat(ctx) }

// AuditOnce compares the process's leases once with the leases in the database.
func (e *Manager) AuditOnce(ctx context.Context) { e.auditLeases(ctx) }

// FreeDeadProcessesOnce frees the leases of dead processes once, as a process whose own leases have been valid
// for long enough.
func (e *Manager) FreeDeadProcessesOnce(ctx context.Context) {
	e.leaseHealth.mu.Lock()
	if !e.leaseHealth.since.IsZero() {
		e.leaseHealth.since = e.leaseHealth.since.Add(-e.Timing.Lease)
	}
	e.leaseHealth.mu.Unlock()
	e.freeDeadProcesses(ctx)
}

// ClaimOnce claims due submissions once. ClaimLandedOnce claims landed submissions once.
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
	_ = e.tracker.sends.Wait() // sends log their own errors
}

// Idle reports whether nothing of the process runs, except steps under the given
// leases.
func (e *Manager) Idle(except ...Lease) bool {
	t := e.tracker
	_ = t.sends.Wait() // sends log their own errors
	if !t.resolving.TryLock() {
		return false
	}
	t.resolving.Unlock()
	e.recorder.mu.Lock()
	queuedFinal := slices.Clone(e.recorder.finalized)
	var queuedLandings []*entry
	for _, l := range e.recorder.landed {
		queuedLandings = append(queuedLandings, l.entry)
	}
	e.recorder.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.entries {
		if w.phase == working && !slices.Contains(except, w.j.Lease) {
			return false
		}
		// The entry's step is about to queue its landing.
		if w.phase == recording && !slices.Contains(queuedLandings, w) {
			return false
		}
	}
	for _, w := range t.landed {
		if w.busy && !slices.Contains(queuedFinal, w) {
			return false
		}
	}
	return true
}
