package build

import "github.com/relaypool/relaypool/relay/contract"

// submissionAlerts returns an alert for each class of failure that has its own remedy, and one alert
// for all other failures, by error code. Faults of the relay itself are in fleetAlerts.
func submissionAlerts() []alert {
	failureShare := func(code, share string, by ...string) string {
		return shareAbove(contract.MetricSubmissions.Name+"{,"+code+"}", share, contract.MetricSubmissions.Name+"{}", "15m", minFailures, by...)
	}
	return []alert{
		{
			"StaleRoots", failureShare(`outcome="root_not_found"`, "0.1"), 15 * minute, severityWarning,
			"a tenth of the submissions fail because their roots left the pool's root history",
		},
		{
			"ProgramRefusesSubmissions", failureShare(`outcome="program_error"`, "0.05"), 15 * minute, severityCritical,
			"the program refuses a twentieth of the submissions",
		},
		{
			"NotesSpentElsewhere", failureShare(`outcome="nullifier_spent"`, "0.1"), 15 * minute, severityWarning,
			"a tenth of the submissions spend notes that are already spent",
		},
		{
			"SubmissionsFail", failureShare(`outcome!~"completed|internal|root_not_found|program_error|nullifier_spent"`, "0.05", "outcome"), 15 * minute, severityWarning,
			"a twentieth of the submissions fail as {{ $labels.outcome }}",
		},
	}
}
