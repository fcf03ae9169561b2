package txmgr

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// send forwards the job's newest attempt for the first time, a client's call with
// preflight. After any answer the attempt is committed and may land until it is dead: a
// timeout says nothing, and a refusal only that these endpoints did not forward it.
func (m *Manager) send(ctx context.Context, j *Job, signed *Attempt) {
	if !j.accepted.IsZero() {
		m.Observer.Stage("first_send", m.Now().Sub(j.accepted))
		j.accepted = time.Time{}
	}
	// An attempt that preflight refuses may not be signed anew before it is dead, which
	// takes longer than a swap has; a failure on the chain is resolved within seconds. A
	// second leg was simulated a moment ago, so it goes without preflight.
	err := m.broadcast(ctx, signed, signed.Purpose == PurposeTransact)
	var refused *onchain.SendError
	if !errors.As(err, &refused) {
		if err != nil {
			m.Log.InfoContext(ctx, "send timed out; outcome unknown", "request_id", j.Row.RequestID(), "error", err)
		}
		return
	}
	m.Observer.Attempt("refused")
	m.Log.InfoContext(ctx, "attempt rejected by preflight", "request_id", j.Row.RequestID(), "error", err)
	class := shieldpool.ClassTransient
	if refused.Err != nil {
		class = m.Class(signed.Purpose, refused.Err)
		m.reportFailure(j, signed, class, refused.Err)
	}
	if !Permanent(class) {
		return
	}
	// Another send would only buy a failure, so the attempt is left to expire.
	j.Live[len(j.Live)-1].Rejected = true
	if err := m.Store.MarkAttemptRejected(ctx, j.Lease, signed.Signature); err != nil {
		m.Log.DebugContext(ctx, "recording a preflight rejection failed", "request_id", j.ID, "error", err)
	}
}

// broadcast sends committed bytes. Once started, a send runs to its own end: neither a
// shutdown nor a step that ran out of time may cut it off.
func (m *Manager) broadcast(ctx context.Context, a *Attempt, first bool) error {
	err := m.Chain.Send(context.WithoutCancel(ctx), a.Raw, first, a.BlockhashSlot)
	m.outage.observe(m.Now(), err)
	return err
}

// Permanent reports whether a transaction that fails with the class will always fail with it.
func Permanent(class shieldpool.Class) bool {
	switch class {
	case shieldpool.ClassStaleProof, shieldpool.ClassSpent, shieldpool.ClassBadInput, shieldpool.ClassPolicy,
		shieldpool.ClassRecipientRent, shieldpool.ClassBug, shieldpool.ClassRaiseCompute:
		return true
	default:
		return false
	}
}

// sendOutage records since when no endpoint has taken a transaction. A submit-only endpoint
// may be gone, or its plan used up, while other endpoints are still read: signed attempts
// are then sent again and again, and more processes would not help.
type sendOutage struct {
	// minDuration is how long sends have to fail.
	minDuration time.Duration
	mu          sync.Mutex
	since, last time.Time
	failures    int
}

// observe records the result of one send.
func (d *sendOutage) observe(now time.Time, err error) {
	unavailable := (*onchain.Unavailable)(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !errors.Is(err, onchain.ErrUnavailable): // taken, or refused by an endpoint that could have taken it
		d.failures = 0
	case errors.As(err, &unavailable) && unavailable.Kind == onchain.KindBudget:
		// The relay itself left it out, to keep the budget for other calls.
	default:
		if d.outdated(now) {
			d.failures = 0
		}
		if d.failures++; d.failures == 1 {
			d.since = now
		}
		d.last = now
	}
}

// reset records that something landed: regardless of its answer, an endpoint took it.
func (d *sendOutage) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = 0
}

// ongoing reports whether several sends in a row have failed for long enough.
func (d *sendOutage) ongoing(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failures >= triesBeforeHold && d.last.Sub(d.since) >= d.minDuration && !d.outdated(now)
}

// outdated reports that the last failure is so long ago that the state is not known.
func (d *sendOutage) outdated(now time.Time) bool { return now.Sub(d.last) >= 2*d.minDuration }

var errNoSubmitEndpoint = errors.New("no submit endpoint takes transactions")

// submitOutage is the error of a queue that waits for the submit endpoints; nil when they
// are not known to fail.
func (m *Manager) submitOutage() error {
	if m.outage.ongoing(m.Now()) {
		return errNoSubmitEndpoint
	}
	return nil
}
