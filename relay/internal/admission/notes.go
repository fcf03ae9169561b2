package admission

import (
	"context"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
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
	if c.Swap != nil && seen.RecipientExists && !seen.RecipientOwner.Equals(solana.SystemProgramID) {
		return refusal.New(refusal.InvalidRecipient,
			"the recipient's account belongs to a program other than the system program, so it is no wallet and a refund might be lost in it: expected a wallet's own address")
	}
	if c.Kind() != shieldpool.KindWithdrawal {
		return nil // a swap's refund also pays the recipient the rent of the swap state, which is above the minimum
	}
	net, _ := a.Pool.Profile.Fees.Net(c.Inputs.Gross())
	if least := a.Submissions.RecipientMinimum(); net < least && seen.RecipientLamports < least-net {
		return submission.RecipientBelowRent(least)
	}
	return nil
}
