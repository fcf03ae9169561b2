package txmgr

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// send sends the job's newest attempt for the first time, with preflight if it is a client's
// call. Whatever the answer, the attempt is committed and may land until it is dead: a
// timeout proves nothing, and a refusal proves only that these endpoints did not forward it.
func (m *Manager) send(ctx context.Context, j *Job, signed *Attempt) {
	if !j.accepted.IsZero() {
		m.Observer.Stage("first_send", m.Now().Sub(j.accepted))
		j.accepted = time.Time{}
	}
	// A second leg is sent without preflight: it was simulated a moment ago, and a failure on
	// the chain is resolved within seconds. An attempt that preflight refused can be replaced
	// only once it has expired, which takes longer than a swap has.
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
	if !IsPermanent(class) {
		return
	}
	// Another send could only cost a fee, so the attempt is left to expire.
	j.Live[len(j.Live)-1].Rejected = true
	if err := m.Store.MarkAttemptRejected(ctx, j.Lease, signed.Signature); err != nil {
		m.Log.DebugContext(ctx, "recording a preflight rejection failed", "request_id", j.ID, "error", err)
	}
}

// broadcast sends committed bytes. Neither a shutdown nor the end of a step cancels a send
// that has started.
func (m *Manager) broadcast(ctx context.Context, a *Attempt, first bool) error {
	err := m.Chain.Send(context.WithoutCancel(ctx), a.Raw, first, a.BlockhashSlot)
	m.outage.observe(m.Now(), err)
	return err
}

// IsPermanent reports whether a transaction that fails with the class will always fail with
// it.
func IsPermanent(class shieldpool.Class) bool {
	switch class {
	case shieldpool.ClassStaleProof, shieldpool.ClassSpent, shieldpool.ClassBadInput, shieldpool.ClassPolicy,
		shieldpool.ClassRecipientRent, shieldpool.ClassBug, shieldpool.ClassRaiseCompute:
		return true
	default:
		return false
	}
}

// sendOutage records since when no endpoint has accepted a transaction. A submit-only
// endpoint may be gone, or its quota used up, while other endpoints can still be read:
// signed attempts are then rebroadcast in vain, and more processes would not help.
type sendOutage struct {
	// minDuration is how long sends have to fail to count as an outage.
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
	case !errors.Is(err, onchain.ErrUnavailable): // an endpoint accepted or refused the transaction
		d.failures = 0
	case errors.As(err, &unavailable) && unavailable.Kind == onchain.KindBudget:
		// The relay itself withheld the send, to keep the budget for other calls.
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

// reset records that a transaction landed: whatever its send returned, an endpoint accepted
// it.
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

// outdated reports that the last failure is so long ago that the state is unknown.
func (d *sendOutage) outdated(now time.Time) bool { return now.Sub(d.last) >= 2*d.minDuration }

var errNoSubmitEndpoint = errors.New("no submit endpoint accepts transactions")

// submitOutage returns an error while no submit endpoint accepts transactions, as far as
// this process knows.
func (m *Manager) submitOutage() error {
	if m.outage.ongoing(m.Now()) {
		return errNoSubmitEndpoint
	}
	return nil
}
