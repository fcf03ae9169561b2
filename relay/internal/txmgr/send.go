package txmgr

import (
	"context"
	"errors"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// send sends the job's newest attempt for the first time, with preflight unless its purpose skips it,
// and except at the endpoint that has just simulated it.
// The attempt is committed, and may land whatever the answer is: a timeout proves nothing, and a
// refusal proves only that these endpoints did not forward the attempt.
func (m *Manager) send(ctx context.Context, j *Job, signed *Attempt) {
	if !j.accepted.IsZero() {
		m.Observer.Stage("first_send", m.Now().Sub(j.accepted))
		j.accepted = time.Time{}
	}
	m.sendLane(ctx, signed, true)
	how := onchain.Sending{First: !skipsPreflight(signed.Purpose)}
	if j.simulatedBy != "" && m.Now().Sub(j.simulatedAt) < m.SlotDuration() { // later, the state may have changed
		how.SimulatedBy = j.simulatedBy
	}
	err := m.broadcast(ctx, signed, how)
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
		class = m.classOf(signed, refused.Err)
		m.reportFailure(j, signed, class, refused.Err)
	}
	if !IsPermanent(class) {
		return
	}
	// The attempt is not sent again, because it could only fail and cost its fee. It expires.
	j.Live[len(j.Live)-1].Rejected = true
	if err := m.Store.MarkAttemptRejected(ctx, j.Lease, signed.Signature); err != nil {
		m.Log.DebugContext(ctx, "recording a preflight rejection failed", "request_id", j.ID, "error", err)
	}
}

// broadcast sends the bytes of a committed attempt. A send that has started goes on after a
// shutdown and after the end of the step.
func (m *Manager) broadcast(ctx context.Context, a *Attempt, how onchain.Sending) error {
	err := m.Chain.Send(context.WithoutCancel(ctx), a.Raw, how, a.BlockhashSlot)
	m.outage.observe(m.Now(), err)
	return err
}

// sendLane sends an attempt to its lane, if it has one.
func (m *Manager) sendLane(ctx context.Context, a *Attempt, first bool) {
	if a.Lane != "" {
		m.Chain.SendLane(context.WithoutCancel(ctx), a.Lane, a.Raw, first)
	}
}
