package txmgr

import (
	"context"
	"fmt"
)

// Launch makes a new attempt: it prepares, simulates at minContextSlot or later, signs, records
// and sends a transaction. If Prepare has simulated it with success, that will do, whatever the slot. The caller must have made sure that no earlier attempt of the job can
// still land, or that EarlyAttemptDue is true. When Launch returns a Failure, the simulation failed,
// and nothing was signed. It returns ErrNoEarlyAttempt when it recorded no early attempt.
func (m *Manager) Launch(ctx context.Context, j *Job, d *Draft, minContextSlot uint64) (*Failure, error) {
	early := len(j.Live) > 0
	a, failure, err := m.prepareAndRecord(ctx, j, d, minContextSlot)
	switch {
	case err != nil && early && a == nil:
		return nil, fmt.Errorf("%w: %w", ErrNoEarlyAttempt, err)
	case failure != nil || err != nil:
		return failure, err
	}
	if early {
		m.Observer.Attempt("early")
	}
	m.send(ctx, j, a)
	return nil, nil
}

// prepareAndRecord prepares, simulates, signs and records an attempt. If it returns both an attempt
// and an error, the attempt may be recorded.
func (m *Manager) prepareAndRecord(ctx context.Context, j *Job, d *Draft, minContextSlot uint64) (*Attempt, *Failure, error) {
	t := j.takePrepared(ctx, d)
	if t == nil {
		var failure *Failure
		var err error
		if t, failure, err = m.prepareAndSimulate(ctx, j, d, minContextSlot); failure != nil || err != nil {
			return nil, failure, err
		}
	}
	return m.signAndRecord(ctx, t)
}

// prepareAndSimulate prepares and simulates a transaction. The caller must call signAndRecord or abandon
// if it returns one.
func (m *Manager) prepareAndSimulate(ctx context.Context, j *Job, d *Draft, minContextSlot uint64) (*transaction, *Failure, error) {
	t, err := m.prepare(ctx, j, d)
	if err != nil {
		return nil, nil, err
	}
	simulated := false
	defer func() {
		if !simulated { // also after a panic
			m.abandon(t)
		}
	}()
	failure, err := m.simulate(ctx, t, minContextSlot)
	if failure != nil || err != nil {
		return nil, failure, Unreachable(j, err)
	}
	simulated = true
	return t, nil, nil
}

// abandon ends the allowance of the caps and the reservation with the payer of a transaction that is not
// signed.
func (m *Manager) abandon(t *transaction) {
	m.Payers.Cancel(t.payer.PublicKey(), t.reserved)
	t.endAllowance(false)
}

// signAndRecord signs and records a simulated transaction as an attempt. It ends the allowance of the
// caps and, unless it succeeds, the reservation with the payer.
func (m *Manager) signAndRecord(ctx context.Context, t *transaction) (*Attempt, *Failure, error) {
	keepReservation, mayBeRecorded, endReservation := false, false, m.Payers.Cancel
	defer func() { // deferred, because the reservations must be released after a panic too
		if !keepReservation {
			endReservation(t.payer.PublicKey(), t.reserved)
		}
		t.endAllowance(mayBeRecorded)
	}()
	if err := m.checkEarly(t); err != nil { // again, because the simulation has set the limits
		return nil, nil, err
	}
	a, err := m.sign(ctx, t)
	if err != nil {
		return nil, nil, Unreachable(t.j, err)
	}
	mayBeRecorded, endReservation = true, m.Payers.Release // even if recordAttempt returns an error
	if err := m.recordAttempt(ctx, t, a); err != nil {
		return a, nil, err
	}
	keepReservation = true
	return a, nil, nil
}
