package submission

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// HoldFailing is the reason of a submission that waits because it keeps failing on the chain.
const HoldFailing = string(refusal.ProgramError)

const (
	// maxPaidFailures is the number of times that a submission may fail on the chain, each
	// time for the network's fee, although its simulation had just succeeded.
	maxPaidFailures = 8
	// immediateRetries is the number of failures below which the next attempt is signed at
	// once. Each further failure doubles the delay after the last signature, from
	// firstRetryDelay to maxRetryDelay.
	immediateRetries               = 2
	firstRetryDelay, maxRetryDelay = 30 * time.Second, 8 * time.Minute
)

// retryAt returns the time before which no new attempt is signed, and how many of the dead
// attempts have cost a fee.
func retryAt(dead []txmgr.Attempt) (until time.Time, paid int) {
	var last time.Time
	for i := range dead {
		if dead[i].Paid > 0 {
			paid++
			if dead[i].CreatedAt.After(last) {
				last = dead[i].CreatedAt
			}
		}
	}
	return last.Add(retryDelay(paid)), paid
}

// retryDelay returns the delay after the given number of paid failures.
func retryDelay(paid int) time.Duration {
	if paid < immediateRetries {
		return 0
	}
	return min(firstRetryDelay<<min(paid-immediateRetries, maxPaidFailures), maxRetryDelay)
}

// retry signs the client's call. When earlier attempts have failed on the chain, it signs
// only after a delay, and fails the submission after too many failures. A simulation alone
// does not prevent the fees: an account may be changed between simulation and landing, even
// on purpose. ended reports that there were too many failures.
func (h *Handler) retry(ctx context.Context, j *txmgr.Job, p *progress) (ended bool, err error) {
	until, paid := retryAt(j.Dead)
	switch pause := until.Sub(h.Now()); {
	case paid >= maxPaidFailures:
		return true, h.fail(ctx, j, refusal.New(refusal.ProgramError,
			"the transaction failed on the chain %d times, although each time it had just been simulated without a fault: an account that it uses changes between the two; no note was spent", paid))
	case pause > 0:
		return false, &txmgr.Deferral{
			Reason: HoldFailing, Delay: pause, Fault: true,
			Cause: fmt.Errorf("the transaction has failed on the chain %d times, each for a fee, after a simulation without a fault: it is signed anew later", paid),
		}
	}
	return false, h.launch(ctx, j, p)
}
