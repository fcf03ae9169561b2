package submission

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// HoldFailing is the hold reason of a submission that keeps failing on the chain.
const HoldFailing = string(refusal.ProgramError)

const (
	// maxPaidFailures is the number of failures on the chain after which a submission fails. Each
	// of them costs the network's fee, although the simulation had just succeeded.
	maxPaidFailures = 8
	// failuresBeforeDelay is the number of failures from which on the next attempt has to wait. The
	// delay begins when the last failed attempt was signed. It is firstRetryDelay at first. Each
	// further failure doubles it, up to maxRetryDelay.
	failuresBeforeDelay            = 2
	firstRetryDelay, maxRetryDelay = 30 * time.Second, 8 * time.Minute
)

// retryAt returns the earliest time for a new attempt, and how many of the dead attempts have
// cost a fee.
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
	if paid < failuresBeforeDelay {
		return 0
	}
	return min(firstRetryDelay<<min(paid-failuresBeforeDelay, maxPaidFailures), maxRetryDelay)
}

// launchAfterDelay signs and sends the client's call. If earlier attempts failed on the chain, it
// defers the submission until a delay is over. After too many failures it ends the submission as
// failed, and returns true. A simulation alone does not prevent the fees: an account may be changed
// between simulation and landing, even on purpose.
func (h *Handler) launchAfterDelay(ctx context.Context, j *txmgr.Job, p *progress) (ended bool, err error) {
	until, paid := retryAt(j.Dead)
	switch delay := until.Sub(h.Now()); {
	case paid >= maxPaidFailures:
		return true, h.fail(ctx, j, refusal.New(refusal.ProgramError,
			"the transaction failed on the chain %d times, although each time it had just been simulated without a fault: an account that it uses changes between the two; no note was spent", paid))
	case delay > 0:
		return false, &txmgr.Deferral{
			Reason: HoldFailing, Delay: delay, Fault: true,
			Cause: fmt.Errorf("the transaction has failed on the chain %d times, each for a fee, after a simulation without a fault: it is signed anew later", paid),
		}
	}
	return false, h.launch(ctx, j, p)
}
