package txmgr

import (
	"context"
)

// Launch makes a new attempt: it prepares, simulates at minContextSlot or later, signs, records
// and sends a transaction. The caller must have made sure that no earlier attempt of the job can
// still land. When Launch returns a Failure, the simulation failed, and nothing was signed.
func (m *Manager) Launch(ctx context.Context, j *Job, d *Draft, minContextSlot uint64) (*Failure, error) {
	t, err := m.prepare(ctx, j, d)
	if err != nil {
		return nil, err
	}
	a, failure, err := m.signAndRecord(ctx, t, minContextSlot)
	if failure != nil || err != nil {
		return failure, err
	}
	m.send(ctx, j, a)
	return nil, nil
}

// signAndRecord simulates, signs and records the attempt. It ends the allowance of the caps and,
// unless it succeeds, the reservation with the payer.
func (m *Manager) signAndRecord(ctx context.Context, t *transaction, minContextSlot uint64) (*Attempt, *Failure, error) {
	keepReservation, mayBeRecorded, endReservation := false, false, m.Payers.Cancel
	defer func() { // deferred, because the reservations must be released after a panic too
		if !keepReservation {
			endReservation(t.payer.PublicKey(), t.reserved)
		}
		t.endAllowance(mayBeRecorded)
	}()
	failure, err := m.simulate(ctx, t, minContextSlot)
	if failure != nil || err != nil {
		return nil, failure, Unreachable(t.j, err)
	}
	a, err := m.sign(ctx, t)
	if err != nil {
		return nil, nil, Unreachable(t.j, err)
	}
	mayBeRecorded, endReservation = true, m.Payers.Release // even if recordAttempt returns an error
	if err := m.recordAttempt(ctx, t, a); err != nil {
		return nil, nil, err
	}
	keepReservation = true
	return a, nil, nil
}
