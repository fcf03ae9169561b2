package txmgr

import "context"

// record commits an attempt before its first send. After an error the attempt may still be
// committed, when only the answer was lost: a new owner then sends it.
func (m *Manager) record(ctx context.Context, t *transaction, a *Attempt) error {
	if err := m.Store.RecordAttempt(ctx, t.j.Lease, *a); err != nil {
		return err
	}
	if m.submitOutage() == nil {
		m.resumeQueue(ctx)
	}
	j := t.j
	j.since, j.Tries, j.Hold = m.Now(), 0, ""
	j.Live = append(j.Live, *a)
	j.reserved = append(j.reserved, reservation{signature: a.Signature, payer: t.payer.PublicKey(), lamports: t.reserved})
	m.Observer.Attempt("signed")
	return nil
}
