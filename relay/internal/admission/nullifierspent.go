package admission

import (
	"context"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// checkNotes checks on the chain whether the notes are unspent and the recipient can be paid.
func (a *Admission) checkNotes(ctx context.Context, c *shieldpool.Call) error {
	seen, err := a.State.Inspect(ctx, c.Inputs, c.Recipient, 0)
	if err != nil {
		return err
	}
	for i, spent := range seen.Spent {
		if !spent {
			continue
		}
		// A client believes that a note which is refused as spent is lost. So every endpoint is
		// asked. If the endpoints contradict each other, the submission is accepted, and
		// simulations at two endpoints decide.
		if spent, err = a.State.Spent(ctx, c.Inputs.Nullifiers[i]); err != nil {
			return err
		}
		if spent {
			return submission.NullifierSpent(i)
		}
	}
	if err := checkRefundWallet(c, &seen); err != nil {
		return err
	}
	return a.checkRecipientRent(c, &seen)
}
