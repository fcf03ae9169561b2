package build

import (
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/relay/contract"
)

// alerts returns the alerts for the fleet that the RelayPool declares, without those that do not
// apply to it.
func alerts(in Input) []alert {
	payers := in.Pool.Spec.FeePayers
	list := append(fleetAlerts(), payerAlerts(in)...)
	target := ptr.Deref(payers.TargetBalanceLamports, 0)
	if low := lowBalance(ptr.Deref(payers.MinimumBalanceLamports, 0), target); low > 0 {
		list = append(list, lowBalanceAlerts(low, target)...)
	}
	if len(payers.Signers) > 0 {
		list = append(list, signerAlerts()...)
	}
	if c := payers.SpendCaps; c.HourLamports > 0 || c.DayLamports > 0 || ptr.Deref(c.TransfersDayLamports, contract.DefaultSpendCapTransfersDay) > 0 {
		list = append(list, spendCapAlerts()...)
	}
	list = append(list, chainAlerts()...)
	list = append(list, submissionAlerts()...)
	if in.Pool.Spec.Swap != nil {
		list = append(list, swapAlerts()...)
	}
	return append(list, noRelayReports(in)...)
}

func fleetAlerts() []alert {
	retentionRuns := contract.MetricMaintenanceRuns.Name + `{,job="retention",outcome="done"}`
	return []alert{
		{
			"BacklogTooOld", "max(" + contract.MetricBacklogAge.Name + "{}) > 60", 2 * minute, severityCritical,
			"accepted work has waited for over a minute and no relay claims it",
		},
		{
			"SubmissionsHeld", "max by (reason) (" + contract.MetricHeld.Name + `{,reason!~"(swap|router)_.+|no_route"}) > 0`, 5 * minute, severityCritical,
			"accepted work waits for {{ $labels.reason }}; more pods would not help",
		},
		swapOverdue(),
		{
			"InternalErrors", lastHourCount(contract.MetricSubmissions, `outcome="internal"`) + " + " + lastHourCount(contract.MetricAttempts, `event="panic"`) + " + " +
				lastHourCount(contract.MetricHTTPRequests, `status="500"`) + " > 0", 0, severityWarning,
			"a fault of the relay itself",
		},
		{
			"RequestsRefused", shareAbove(contract.MetricHTTPRequests.Name+`{,method="POST",status="503"}`, "0.5", contract.MetricHTTPRequests.Name+`{,method="POST"}`, "5m", minRetriedFailures), 5 * minute, severityCritical,
			"more than half of the clients' requests are answered 503",
		},
		{
			"ProcessDied", "sum(increase(" + contract.MetricLeases.Name + `{,event="reaped"}[15m])) > 0`, 0, severityWarning,
			"a relay died without releasing its leases",
		},
		{
			// The offset excludes a fleet that is younger than two hours. The 30 minutes are for
			// an older fleet whose relays have just started. If the first run ends before the
			// first scrape, increase() does not count it, and the second run may end 25 minutes
			// later.
			"RetentionBehind", "sum(increase(" + retentionRuns + "[2h])) == 0 and count(" + retentionRuns + " offset 2h) > 0", 30 * minute, severityWarning,
			"old rows have not been deleted for two hours",
		},
	}
}

// noRelayReports returns the alert for a fleet whose pods report nothing. A fleet of 0 pods
// reports nothing either. That is not a failure, so such a fleet does not get this alert.
func noRelayReports(in Input) []alert {
	if in.Withheld || ptr.Deref(in.Replicas, 1) <= 0 {
		return nil
	}
	return []alert{{
		"NoRelayReports", "absent(" + contract.MetricBacklog.Name + "{})", 5 * minute, severityCritical,
		"no relay reports the backlog: none runs, none is scraped, or the database is unreachable",
	}}
}
