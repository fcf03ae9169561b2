package txmgr

import (
	"context"
	"time"
)

// recordAttempt commits an attempt before its first send. If only the database's answer was lost,
// the attempt is committed although recordAttempt returns an error, and a new owner sends it.
func (m *Manager) recordAttempt(ctx context.Context, t *transaction, a *Attempt) error {
	if err := m.Store.RecordAttempt(ctx, t.j.Lease, *a); err != nil {
		return err
	}
	// A pause ends, because its reason usually prevents the signing. An outage of the submit
	// endpoints does not prevent it.
	if m.submitOutage() == nil {
		m.resumeQueue(ctx)
	}
	j := t.j
	j.simulatedBy, j.simulatedAt = t.simulatedBy, t.simulatedAt
	j.since, j.Tries, j.Hold, j.earlyAt = m.Now(), 0, "", time.Time{}
	j.Live = append(j.Live, *a)
	j.reserved = append(j.reserved, reservation{signature: a.Signature, payer: t.payer.PublicKey(), lamports: t.reserved})
	m.Observer.Attempt("signed")
	return nil
}
