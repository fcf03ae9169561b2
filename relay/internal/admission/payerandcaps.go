package admission

import (
	"context"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// checkFunds refuses a call that no fee payer can pay, or that the spend caps do not allow.
func (a *Admission) checkFunds(ctx context.Context, c *shieldpool.Call) error {
	// While the rate of rent is unknown, Known returns the highest rate.
	rent, created := a.Submissions.Rent(), c.NewAccounts()
	payerNeeds := created.Rent(rent.Upper()) + shieldpool.SignatureFee
	cappedCost := created.Rent(rent.Known()) + shieldpool.SignatureFee
	if c.Swap != nil { // a swap that has started has to be finished
		payerNeeds += shieldpool.SecondLegAccounts().Rent(rent.Upper())
		cappedCost += rent.Known().Minimum(shieldpool.TokenAccountLength) + shieldpool.SignatureFee
	}
	if err := a.Payers.Ready(ctx, payerNeeds); err != nil {
		return err
	}
	return a.Spending.Ready(ctx, c.Kind() == shieldpool.KindTransfer, cappedCost)
}
