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
// preflight. Whatever comes back, the attempt is committed and lives until it is
// dead: a timeout says nothing, and a refusal only that these endpoints did not
// forward it.
func (m *Manager) send(ctx context.Context, j *Job, signed *Attempt) {
	if !j.accepted.IsZero() {
		m.Observer.Stage("first_send", m.Now().Sub(j.accepted))
		j.accepted = time.Time{}
	}
	// What preflight refuses may not be signed anew before it is dead, which takes
	// longer than a swap has; what fails on the chain is settled within seconds. A
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
	// Sending it again would only buy a failure, so it is left to die, by whoever holds the row then.
	j.Live[len(j.Live)-1].Rejected = true
	if err := m.Store.MarkAttemptRejected(ctx, j.Lease, signed.Signature); err != nil {
		m.Log.DebugContext(ctx, "recording a preflight rejection failed", "request_id", j.ID, "error", err)
	}
}

// broadcast sends bytes that are committed. Once begun a send goes on to its own end:
// neither a shutdown nor a step that ran out of time may cut it off.
func (m *Manager) broadcast(ctx context.Context, a *Attempt, first bool) error {
	err := m.Chain.Send(context.WithoutCancel(ctx), a.Raw, first, a.BlockhashSlot)
	m.outage.observe(m.Now(), err)
	return err
}

// Permanent reports whether a transaction that fails so will fail so again.
func Permanent(class shieldpool.Class) bool {
	switch class {
	case shieldpool.ClassStaleProof, shieldpool.ClassSpent, shieldpool.ClassBadInput, shieldpool.ClassPolicy,
		shieldpool.ClassRecipientRent, shieldpool.ClassBug, shieldpool.ClassRaiseCompute:
		return true
	default:
		return false
	}
}

// sendOutage is since when no endpoint has taken a transaction. An endpoint that is
// only submitted to may be gone, or its plan used up, while others are read: what
// is signed is then sent again and again, and more processes would not help.
type sendOutage struct {
	// minDuration is for how long sends have to fail.
	minDuration time.Duration
	mu          sync.Mutex
	since, last time.Time
	failures    int
}

// observe tells what came of one send.
func (d *sendOutage) observe(now time.Time, err error) {
	unavailable := (*onchain.Unavailable)(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !errors.Is(err, onchain.ErrUnavailable): // taken, or refused by who could have taken it
		d.failures = 0
	case errors.As(err, &unavailable) && unavailable.Kind == onchain.KindBudget:
		// The relay itself left it out, for the sake of others.
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

// reset tells that something landed: whatever the answer was, it was taken.
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

// outdated reports that nothing has failed for so long that nothing is known any more.
func (d *sendOutage) outdated(now time.Time) bool { return now.Sub(d.last) >= 2*d.minDuration }

var errNoSubmitEndpoint = errors.New("no submit endpoint takes transactions")

// submitOutage is the error of a queue that waits for the submit endpoints; nil when
// they take transactions, as far as is known.
func (m *Manager) submitOutage() error {
	if m.outage.ongoing(m.Now()) {
		return errNoSubmitEndpoint
	}
	return nil
}
