package admission

import (
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// checkRecipientRent checks that after a withdrawal the recipient's account has the minimum for
// rent. If the account already has lamports, the network requires no further lamports (SIMD-0392),
// so only the program's minimum applies.
func (a *Admission) checkRecipientRent(c *shieldpool.Call, seen *onchain.Inspection) error {
	if c.Kind() != shieldpool.KindWithdrawal {
		return nil // a swap's refund also pays the recipient the rent of the swap state, which is above the minimum
	}
	net, _ := a.Pool.Profile.Fees.Net(c.Inputs.Gross())
	least := a.Submissions.RecipientMinimum()
	if seen.RecipientLamports > 0 {
		least = a.Pool.Profile.RecipientMinimum
	}
	if net < least && seen.RecipientLamports < least-net {
		return submission.RecipientBelowRent(least)
	}
	return nil
}
