package txmgr

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// queuePause keeps the reason for which the main queue is paused.
type queuePause struct {
	mu      sync.Mutex
	current string
}

// set pauses the queue. It returns false if the queue was already paused for that reason.
func (h *queuePause) set(reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.current != reason
	h.current = reason
	return changed
}

// clear ends the pause and returns its reason; "" if the queue was not paused.
func (h *queuePause) clear() (was string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, h.current = h.current, ""
	return was
}

func (h *queuePause) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// readError returns an error when the pool cannot be read from the chain. The read may take
// as long as a lease lasts, because a slow chain does not count as unavailable.
func (m *Manager) readError(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	return m.Readable(ctx)
}

// pauseFor pauses the queue if the reason of the deferral applies to all jobs of the main queue.
func (m *Manager) pauseFor(ctx context.Context, d *Deferral) {
	if d.pausesQueue {
		m.pauseQueue(ctx, d.Reason, d.Cause)
	} else if d.Reason == HoldChain {
		if err := m.readError(ctx); err != nil {
			m.pauseQueue(ctx, pauseReason(err), err)
		}
	}
}

func (m *Manager) pauseQueue(ctx context.Context, reason string, cause error) {
	if m.paused.set(reason) {
		m.Log.WarnContext(ctx, "queue paused", "reason", reason, "error", cause)
	}
}

// pauseReason returns the reason of a pause that err causes, the error of a read of the pool.
func pauseReason(err error) string {
	if r, ok := refusal.As(err); ok && r.Code == refusal.PoolNotInitialised {
		return string(r.Code)
	}
	return HoldChain
}

// pauseLoop checks once per Timing.Sweep whether the queue has to be paused or may resume. It does
// not run in a claim loop, because a hanging chain must not delay due or landed jobs.
func (m *Manager) pauseLoop(ctx context.Context) {
	failedReads := 0
	m.repeat(ctx, m.Timing.Sweep, func(ctx context.Context) {
		if m.paused.reason() != "" {
			failedReads = 0
			m.tryResume(ctx)
			return
		}
		failedReads = m.checkPause(ctx, failedReads)
	})
}

// checkPause pauses the queue when nothing can be sent, or when two reads of the chain in a row
// failed. It takes and returns the number of reads that have failed in a row. A process whose
// capacity is used up by sent transactions tries nothing new, so without this check it would not
// notice an outage. Its queue would then count as backlog, and the fleet would be scaled up in
// vain.
func (m *Manager) checkPause(ctx context.Context, failedReads int) int {
	if err := m.submitOutage(); err != nil {
		m.pauseQueue(ctx, HoldChain, err)
		return 0
	}
	if !m.rowsMayRemain.Load() {
		return 0
	}
	err := m.readError(ctx)
	if err == nil || ctx.Err() != nil {
		return 0
	}
	if failedReads++; failedReads < 2 {
		return failedReads
	}
	m.pauseQueue(ctx, pauseReason(err), fmt.Errorf("read the pool: %w", err))
	return 0
}

// tryResume ends a pause whose reason no longer applies.
func (m *Manager) tryResume(ctx context.Context) {
	var err error
	switch refusal.Code(m.paused.reason()) {
	case refusal.FeePayerEmpty:
		call, cancel := context.WithTimeout(ctx, m.Timing.Lease)
		defer cancel()
		err = m.Payers.Ready(call, 2*shieldpool.RentExempt+shieldpool.SignatureFee)
	case HoldSigner:
		err = m.signerError(ctx)
	case refusal.PoolNotInitialised, refusal.ChainUnavailable:
		err = m.readError(ctx)
	default:
		return
	}
	switch outage := m.submitOutage(); {
	case err != nil:
	case outage != nil: // another reason applies now
		m.pauseQueue(ctx, HoldChain, outage)
	default:
		m.resumeQueue(ctx)
	}
}

// signerError returns an error while no payer's signer is available for what was last refused.
func (m *Manager) signerError(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Lease)
	defer cancel()
	least := m.unsigned.Load()
	payer, err := m.Payers.Pick(ctx, least, false)
	if err != nil && errors.Is(err, ErrSignerUnavailable) {
		return err
	}
	if err == nil {
		m.Payers.Cancel(payer.PublicKey(), least)
	}
	return nil // another reason, if any, pauses the queue again
}

// resumeQueue ends the pause and logs it.
func (m *Manager) resumeQueue(ctx context.Context) {
	if was := m.paused.clear(); was != "" {
		m.Log.InfoContext(ctx, "queue resumed", "reason", was)
		m.ClaimSoon()
	}
}

// PausedBy returns the reason for which the queue is paused; "" while it is not paused.
func (m *Manager) PausedBy() string { return m.paused.reason() }

// isPaused reports whether the queue is paused.
func (m *Manager) isPaused(l *Queue) bool { return l.pausable() && m.paused.reason() != "" }

// claimFunc returns the function that claims rows of a queue. While the queue is paused, it is
// Probe, which claims rows whose transactions may be on the chain and, as a probe, one waiting row.
// The first do not depend on the reason for the pause, and must not wait until it ends.
func (m *Manager) claimFunc(l *Queue) func(ctx context.Context, worker uuid.UUID, limit int) ([]*Job, error) {
	if m.isPaused(l) {
		return l.Probe
	}
	return l.Claim
}
