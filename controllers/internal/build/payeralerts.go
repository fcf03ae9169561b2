package build

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/relay/contract"
)

func payerAlerts(in Input) []alert {
	payers := in.Pool.Spec.FeePayers
	return []alert{
		{
			"AllFeePayersUnusable", "max(" + contract.MetricPayerUsable.Name + "{}) == 0", minute, severityCritical,
			"no fee payer can be used: new work is refused",
		},
		{
			"FeePayerUnusable", "max by (payer) (" + contract.MetricPayerUsable.Name + "{}) == 0", 10 * minute, severityWarning,
			"the fee payer {{ $labels.payer }} is not used: fund it, or look at its signer",
		},
		{
			"FeePayerBalanceUnread", "time() - max by (payer) (" + contract.MetricPayerBalanceTime.Name + "{}) > 120", 5 * minute, severityWarning,
			"the balance of {{ $labels.payer }} has not been read for minutes",
		},
		{
			"UnknownFeePayerSignature", "max(" + contract.MetricLedgerUnknown.Name + "{}) > min(min_over_time(" + contract.MetricLedgerUnknown.Name + "{}[1h]))", 0, severityCritical,
			"a fee payer signed a transaction that the database does not know",
		},
		{
			"RunwayBelowOneDay", runway(ptr.Deref(payers.MinimumBalanceLamports, 0), "6h", "5m") + " < 24 * 3600", 15 * minute, severityWarning,
			"the fee payers' funds last for {{ $value | humanizeDuration }} at the rate of the last six hours",
		},
		{
			"RunwayBelowTwoHours", runway(ptr.Deref(payers.MinimumBalanceLamports, 0), "1h", "1m") + " < 2 * 3600", 10 * minute, severityCritical,
			"the fee payers' funds last for {{ $value | humanizeDuration }} at the rate of the last hour",
		},
		{
			"LedgerDifference", "max by (payer) (" + contract.MetricLedgerDifference.Name + "{}) != 0", 10 * minute, severityWarning,
			"the ledger does not add up for {{ $labels.payer }}",
		},
		{
			"LedgerGap", "max by (payer) (" + contract.MetricLedgerGaps.Name + "{}) > 0", 0, severityWarning,
			"no endpoint has the whole history of {{ $labels.payer }}",
		},
		{
			"LedgerBehind", "time() - min by (payer) (" + contract.MetricLedgerReconciled.Name + "{}) > 1200", 10 * minute, severityWarning,
			"the ledger of {{ $labels.payer }} is behind the chain",
		},
	}
}

func signerAlerts() []alert {
	return []alert{{
		"SignerUnavailable", "min by (signer) (" + contract.MetricSignerAvailable.Name + "{}) == 0", 2 * minute, severityWarning,
		"the signer {{ $labels.signer }} does not sign: its fee payer is not used",
	}}
}

// lowBalanceAlerts returns the alert for a payer whose balance is below low.
func lowBalanceAlerts(low, target int64) []alert {
	return []alert{{
		"FeePayerBalanceLow", fmt.Sprintf("max by (payer) (%s{}) < %d", contract.MetricPayerBalance.Name, low), minute, severityWarning,
		fmt.Sprintf("the fee payer {{ $labels.payer }} is nearly empty: fund it to %d lamports", target),
	}}
}

func spendCapAlerts() []alert {
	return []alert{
		{
			"SpendCapNearlyReached", "min by (cap) (" + contract.MetricCapLeft.Name + "{}) < 0.2 * max by (cap) (" + contract.MetricCap.Name + "{})", 0, severityWarning,
			"four fifths of the spend cap {{ $labels.cap }} are used: find out by whom, or raise it",
		},
		{
			"SpendCapReached", fmt.Sprintf("min by (cap) (%s{}) < %d", contract.MetricCapLeft.Name, transactLamports), 5 * minute, severityCritical,
			"the spend cap {{ $labels.cap }} has no room for another transaction: new work is refused",
		},
	}
}

// transactLamports is the cost of a Transact without a priority fee, with rent at
// shieldpool.HighestRent: 890 880 lamports for each of two nullifier accounts, and 5 000 for
// the signature. A spend cap with less left counts as reached.
const transactLamports = 1_786_760

// runway returns a PromQL expression: how many seconds until the payers' funds fall to their
// minimum, if the fleet keeps spending at its rate over the window. The rate comes from the
// ledger, because a balance also changes when a payer is funded or rotated. All pods report the
// same counters, so a rollout does not interrupt the rate. Returned rent is subtracted. A rate
// below one lamport a second counts as one; the funds then last for years.
func runway(minimum int64, window, step string) string {
	subquery := "[" + window + ":" + step + "]"
	return fmt.Sprintf("sum(clamp_min(max by (payer) (%s{}) - %d, 0)) / clamp_min(sum(rate((max by (kind, cost) (%s{}))%s)) - sum(rate((max(%s{}))%s)), 1)",
		contract.MetricPayerBalance.Name, minimum, contract.MetricSpent.Name, subquery, contract.MetricReturned.Name, subquery)
}

// lowBalance is the balance below which somebody should fund a payer during working hours. It is
// a fifth of the way from the minimum to the target.
func lowBalance(minimum, target int64) int64 { return minimum + max(target-minimum, 0)/5 }
