package txmgr

import (
	"errors"
	"time"
)

// undecidedAfter is how long a process tracks undecided attempts before their job is held. A
// held job uses no capacity. Admission does not count it among the jobs ahead of a new one. A
// blockhash lives for about half a minute (150 slots of 200 ms), so after five minutes the
// attempts should long have landed or expired.
const undecidedAfter = 5 * time.Minute

// undecidedRetry is the interval at which the attempts of a held job are searched again.
const undecidedRetry = time.Minute

// Undecided returns a deferral for a job whose attempts have neither landed nor expired within
// undecidedAfter. Until that time has passed, it returns nil. Once the job is held by HoldExpiry,
// it stays held until its attempts are decided.
func (m *Manager) Undecided(j *Job) error {
	if len(j.Live) == 0 || (j.Hold != HoldExpiry && m.Now().Sub(j.since) <= undecidedAfter) {
		return nil
	}
	return &Deferral{
		Reason: HoldExpiry, Delay: undecidedRetry, Fault: true,
		Cause: errors.New("an attempt is not on the chain, and the endpoints have not agreed that it has expired: run `relay attempts` to list such attempts; `relay attempts --end` asks the endpoints that you name, and ends the attempts that have expired"),
	}
}
