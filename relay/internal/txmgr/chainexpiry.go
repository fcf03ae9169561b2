package txmgr

import (
	"errors"
	"time"
)

// undecidedAfter is how long a process tracks undecided attempts before their job waits as
// held. It then uses no capacity, and does not count among the jobs that push roots out of
// the root history. A blockhash lives for about a minute.
const undecidedAfter = 5 * time.Minute

// undecidedRetry is the interval at which such a job is searched again.
const undecidedRetry = time.Minute

// Undecided returns the deferral of a job whose attempts should have landed or expired long
// ago; nil while this process has not tracked them for long. A job that waited for this
// before goes on waiting until they are decided.
func (m *Manager) Undecided(j *Job) error {
	if len(j.Live) == 0 || (j.Hold != HoldExpiry && m.Now().Sub(j.since) <= undecidedAfter) {
		return nil
	}
	return &Deferral{
		Reason: HoldExpiry, Delay: undecidedRetry, Fault: true,
		Cause: errors.New("an attempt is not on the chain, and the endpoints do not agree that it can land no more: relay attempts lists such, and with --end asks endpoints that you name"),
	}
}
