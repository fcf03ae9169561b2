package admission

import (
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func (a *Admission) checkAmount(in *shieldpool.PublicInputs, withdrawalOnly bool) error {
	switch {
	case in.PublicAmount > 0:
		return refusal.New(refusal.DepositNotRelayed,
			"publicAmount is above zero, a deposit: expected zero or less; the depositor's own wallet signs a deposit and sends it to the chain itself")
	case in.PublicAmount == 0 && withdrawalOnly:
		return refusal.New(refusal.WithdrawalRequired, "publicAmount is zero, a transfer: this route accepts only withdrawals, expected below zero; send transfers to POST /transact")
	case in.PublicAmount == 0:
		return nil
	}
	if _, ok := a.Pool.Profile.Fees.Net(in.Gross()); !ok {
		f := a.Pool.Profile.Fees
		return refusal.New(refusal.AmountBelowFee,
			"the withdrawal is not above its fee of %d lamports and %d/%d of the amount: expected a recipient's share above zero; withdraw more", f.Base, f.Numerator, f.Denominator)
	}
	return nil
}
