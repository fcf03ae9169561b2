package submission

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
)

// HoldFailing is the reason while a submission rests that the chain keeps failing.
const HoldFailing = string(refusal.ProgramError)

const (
	// mostPaid is how often a submission may fail on the chain, each time for the
	// network's fee, although it was simulated without a fault a moment before.
	mostPaid = 8
	// promptly is how many of these failures are tried again at once. Each one more
	// doubles the rest since the last signature, from firstRest to longestRest.
	promptly               = 2
	firstRest, longestRest = 30 * time.Second, 8 * time.Minute
)

// restsUntil is the time before which nothing is signed anew, after the attempts that
// are dead, and how many of them were paid for.
func restsUntil(dead []Attempt) (until time.Time, paid int) {
	var last time.Time
	for i := range dead {
		if dead[i].Paid > 0 {
			paid++
			if dead[i].CreatedAt.After(last) {
				last = dead[i].CreatedAt
			}
		}
	}
	if paid < promptly {
		return time.Time{}, paid
	}
	return last.Add(min(firstRest<<(paid-promptly), longestRest)), paid
}

// resign signs the client's call, unless its attempts have failed on the chain: then
// after a rest, and no more when that was too often. A simulation alone does not save the
// fees: an account may be changed between it and the landing, on purpose too.
func (e *Engine) resign(ctx context.Context, c *Claimed, p *progress) (follow bool, err error) {
	until, paid := restsUntil(c.Dead)
	switch pause := until.Sub(e.Now()); {
	case paid >= mostPaid:
		return false, e.fail(ctx, c, refusal.New(refusal.ProgramError,
			"the transaction failed on the chain %d times, although each time it had just been simulated without a fault: an account that it uses changes between the two; no note was spent", paid))
	case pause > 0:
		return false, &held{reason: HoldFailing, pause: pause, cause: fmt.Errorf("the transaction has failed on the chain %d times, each for a fee, after a simulation without a fault: it is signed anew later", paid)}
	}
	return e.launch(ctx, c, p, e.transact(c))
}
