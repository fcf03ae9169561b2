package pool

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// spendingCapped reports the cap that limits what the payers spend on transfers. Transfers
// pay the pool no fee, so without a cap any owner of a note could make the payers spend their
// whole balance.
func spendingCapped(f *Facts) verdict {
	caps := f.Pool.Spec.FeePayers.SpendCaps
	transfers := ptr.Deref(caps.TransfersDayLamports, contract.DefaultSpendCapTransfersDay)
	for _, c := range []struct {
		lamports int64
		format   string
	}{
		{transfers, "transfers spend at most %d lamports in any 24 hours (spec.feePayers.spendCaps.transfersDayLamports)"},
		{caps.DayLamports, "the fleet spends at most %d lamports in any 24 hours (spec.feePayers.spendCaps.dayLamports)"},
		{caps.HourLamports, "the fleet spends at most %d lamports in any 60 minutes (spec.feePayers.spendCaps.hourLamports)"},
	} {
		if c.lamports > 0 {
			return conditionTrue(v1alpha1.ReasonCapped, fmt.Sprintf(c.format, c.lamports))
		}
	}
	return conditionFalse(v1alpha1.ReasonNoSpendCap, "transfers pay the pool no fee, so anybody who sends them can make the payers spend their whole balance: set spec.feePayers.spendCaps.transfersDayLamports, or omit it for its default")
}
