package txmgr

import (
	"errors"

	"github.com/relaypool/relaypool/relay/onchain"
)

// An early attempt is signed while earlier attempts of the job may still land. It pays more than they
// do, by its price or its tip. Of all of them only one can succeed, because each creates the accounts
// of the same nullifiers; another one that lands fails, and costs its fee. So early attempts are only
// for jobs with a nullifier, and only as long as such fees stay within Options.MaxEarlyFees.

const (
	// earlyAfter is the number of slots after which a job without a landing gets an early attempt:
	// by then four leaders have had their turn.
	earlyAfter = 16
	// maxLive is the largest number of attempts of a job that may land.
	maxLive = 3
)

// ErrNoEarlyAttempt reports that no early attempt was made. Nothing was recorded.
var ErrNoEarlyAttempt = errors.New("no early attempt was made")

// errNotWorthIt reports that an early attempt would not pay more, or might cost too much in vain.
var errNotWorthIt = errors.New("it would not pay more than the earlier attempts, or might cost too much in vain")

// EarlyAttemptDue reports whether the time for an early attempt has come: this process has sent the
// newest attempt for long enough, and it has not expired. The caller must make sure that the job has a
// nullifier, and that no endpoint reports any attempt.
func (m *Manager) EarlyAttemptDue(j *Job) bool {
	if m.MaxEarlyFees == 0 || len(j.Live) == 0 || len(j.Live) >= maxLive || j.Hold == HoldExpiry || m.submitOutage() != nil {
		return false
	}
	last, now, slot := &j.Live[len(j.Live)-1], m.Now(), m.SlotDuration()
	return last.Purpose == PurposeTransact && !last.Rejected && !now.Before(j.earlyAt) &&
		now.Sub(j.since) >= earlyAfter*slot && now.Sub(last.CreatedAt) < onchain.BlockhashLife(slot)
}

// PostponeEarlyAttempt is called when an early attempt was due and not made, because its reason may last:
// each try costs calls to the chain.
func (m *Manager) PostponeEarlyAttempt(j *Job) {
	j.earlyAt = m.Now().Add(2 * earlyAfter * m.SlotDuration())
}

// checkEarly refuses an early attempt that does not pay more than every live attempt, or with which
// those that fail might cost more than MaxEarlyFees: all fees but the lowest.
func (m *Manager) checkEarly(t *transaction) error {
	if len(t.j.Live) == 0 {
		return nil
	}
	fee := t.compute.Fee()
	sum, lowest := fee, fee
	for i := range t.j.Live {
		a := &t.j.Live[i]
		if fee <= a.Fee && t.compute.Tip.Lamports <= a.Tip {
			return errNotWorthIt
		}
		sum, lowest = sum+a.Fee, min(lowest, a.Fee)
	}
	if sum-lowest > m.MaxEarlyFees {
		return errNotWorthIt
	}
	return nil
}
