package txmgr

import (
	"context"

	"github.com/gagliardetto/solana-go"
)

// MarkDead marks the live attempts as dead. The caller must know that they cannot land, and that
// they count as live only because no endpoint's history goes back to them.
func (m *Manager) MarkDead(ctx context.Context, j *Job) error {
	dead := make([]DeadAttempt, len(j.Live))
	for i := range j.Live {
		dead[i] = DeadAttempt{Signature: j.Live[i].Signature}
	}
	return m.markDead(ctx, j, dead)
}

// markDead marks attempts as dead, in the database and in the job, and releases their
// payers' reservations.
func (m *Manager) markDead(ctx context.Context, j *Job, dead []DeadAttempt) error {
	if len(dead) == 0 {
		return nil
	}
	if err := m.Store.MarkAttemptsDead(ctx, j.Lease, dead); err != nil {
		return err
	}
	isDead, paid := map[solana.Signature]bool{}, map[solana.Signature]uint64{}
	for _, d := range dead {
		isDead[d.Signature], paid[d.Signature] = true, d.Paid
	}
	var live []Attempt
	for _, a := range j.Live {
		if isDead[a.Signature] {
			a.Paid = paid[a.Signature]
			j.Dead = append(j.Dead, a)
		} else {
			live = append(live, a)
		}
	}
	j.Live = live
	m.releaseReservations(j, func(s solana.Signature) bool { return isDead[s] })
	return nil
}
