package build

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/relay/contract"
)

// The severities of alerts: critical wakes somebody, warning can wait until the morning.
const (
	severityCritical = "critical"
	severityWarning  = "warning"
)

// runbooks is the address of the folder with the alerts' pages, each named after its alert.
// It names the release that made the alert, because a later release may behave differently.
const runbooks = "https://github.com/relaypool/relaypool/blob/v" + contract.Version + "/docs/reference/alerts/"

// alert is one rule that a person can act on.
type alert struct {
	// name follows the prefix that all alerts share.
	name string
	// expr has a placeholder after each metric, in which scope writes the labels that
	// select this fleet: {}, or with a matcher of the metric's own {,event="signed"}.
	expr     string
	duration time.Duration
	severity string
	// summary may use the labels of expr's result, and its value.
	summary string
}

const (
	alertPrefix = "Relaypool"
	minute      = time.Minute
)

// rule returns the alert in the form that Prometheus reads.
func (a alert) rule(in Input) map[string]any {
	r := map[string]any{
		"alert": alertPrefix + a.name,
		"expr":  scope(a.expr, in),
		"labels": map[string]any{
			"severity": a.severity, labelNamespace: in.Pool.Namespace, labelPool: in.Pool.Name,
		},
		"annotations": map[string]any{
			"summary":     fmt.Sprintf("RelayPool %s/%s: %s", in.Pool.Namespace, in.Pool.Name, a.summary),
			"runbook_url": runbooks + alertPrefix + a.name + ".md",
		},
	}
	if a.duration > 0 {
		r["for"] = fmt.Sprintf("%dm", a.duration/minute)
	}
	return r
}

// scope replaces the placeholders by the fleet's labels.
func scope(expr string, in Input) string {
	labels := fmt.Sprintf("%s=%q,%s=%q", labelNamespace, in.Pool.Namespace, labelPool, in.Pool.Name)
	return strings.NewReplacer("{}", "{"+labels+"}", "{,", "{"+labels+",").Replace(expr)
}

// alerts returns the alerts of the fleet as it is declared.
func alerts(in Input) []alert {
	list := append(fleetAlerts(), payerAlerts(in)...)
	list = append(list, chainAlerts()...)
	list = append(list, failureAlerts()...)
	if in.Pool.Spec.Swap != nil {
		list = append(list, routerAlerts()...)
	}
	// A fleet of 0 pods has no samples, and that is no failure.
	if !in.Withheld && ptr.Deref(in.Replicas, 1) > 0 {
		list = append(list, alert{
			"NoRelayReports", "absent(" + contract.MetricBacklog.Name + "{})", 5 * minute, severityCritical,
			"no relay reports the backlog: none runs, none is scraped, or the database is unreachable",
		})
	}
	return list
}

// increased returns an expression for how often a rare event was counted in the last hour.
// The first event creates its series at 1, which is no increase, so a new series counts as
// one event.
func increased(m contract.Metric, matcher string) string {
	selector := m.Name + "{," + matcher + "}"
	return "(sum(increase(" + selector + "[1h])) or vector(0)) + (count(" + selector + " > 0 unless " + selector + " offset 1h) or vector(0))"
}

// These are the counts of failures that an alert has to exceed. A large share of few
// requests may be chance: in a fleet that is hardly used, a single request would page
// somebody. someRequests is for failures that clients retry by themselves, such as 503.
const (
	minRequests  = 3
	someRequests = 10
)

// shareAbove returns an expression that is true when, within the window, the count of bad
// exceeds least and also the given share of the count of all. bad and all are metrics with
// placeholders, and by has the labels by which bad is grouped. An alert that has to last as
// long as the window does not fire for a short burst, which would be over when somebody
// looks.
func shareAbove(bad, share, all, window string, least int, by ...string) string {
	sum, join := "sum", ">"
	if len(by) > 0 {
		sum, join = "sum by ("+strings.Join(by, ", ")+") ", "> on () group_left ()"
	}
	return fmt.Sprintf("%s(increase(%s[%s])) %s clamp_min(%s * sum(increase(%s[%s])), %d)", sum, bad, window, join, share, all, window, least)
}

func fleetAlerts() []alert {
	retained := contract.MetricMaintenanceRuns.Name + `{,job="retention",outcome="done"}`
	return []alert{
		{
			"BacklogTooOld", "max(" + contract.MetricBacklogAge.Name + "{}) > 60", 2 * minute, severityCritical,
			"accepted work has waited for over a minute and no relay claims it",
		},
		{
			"SubmissionsHeld", "max by (reason) (" + contract.MetricHeld.Name + `{,reason!~"(swap|router)_.+|no_route"}) > 0`, 5 * minute, severityCritical,
			"accepted work waits for {{ $labels.reason }}; more pods would not help",
		},
		{
			// A swap under way when swaps are turned off still has to end.
			"SwapOverdue", "max(" + contract.MetricSwapsOverdue.Name + "{}) > 0", 3 * minute, severityCritical,
			"a swap is past its timeout, neither executed nor refunded: a user's funds wait",
		},
		{
			"InternalErrors", increased(contract.MetricSubmissions, `outcome="internal"`) + " + " + increased(contract.MetricAttempts, `event="panic"`) + " + " +
				increased(contract.MetricHTTPRequests, `status="500"`) + " > 0", 0, severityWarning,
			"a fault of the relay itself",
		},
		{
			"RequestsRefused", shareAbove(contract.MetricHTTPRequests.Name+`{,method="POST",status="503"}`, "0.5", contract.MetricHTTPRequests.Name+`{,method="POST"}`, "5m", someRequests), 5 * minute, severityCritical,
			"more than half of the clients' requests are answered 503",
		},
		{
			"ProcessDied", "sum(increase(" + contract.MetricLeases.Name + `{,event="reaped"}[15m])) > 0`, 0, severityWarning,
			"a relay died without releasing its leases",
		},
		{
			// The offset excludes a fleet that is younger than two hours. The alert waits 30
			// minutes more: the first run, at a relay's start, may end before the first scrape,
			// and the second may end 25 minutes later, after 1.5 periods and its own ten minutes.
			"RetentionBehind", "sum(increase(" + retained + "[2h])) == 0 and count(" + retained + " offset 2h) > 0", 30 * minute, severityWarning,
			"old rows have not been deleted for two hours",
		},
	}
}

// failureAlerts returns an alert for each class of failure that has its own remedy, and one
// alert by code for all others. Faults of the relay itself are in fleetAlerts.
func failureAlerts() []alert {
	failed := func(code, share string, by ...string) string {
		return shareAbove(contract.MetricSubmissions.Name+"{,"+code+"}", share, contract.MetricSubmissions.Name+"{}", "15m", minRequests, by...)
	}
	return []alert{
		{
			"StaleRoots", failed(`outcome="root_not_found"`, "0.1"), 15 * minute, severityWarning,
			"a tenth of the submissions fail because their roots left the pool's root history",
		},
		{
			"ProgramRefusesSubmissions", failed(`outcome="program_error"`, "0.05"), 15 * minute, severityCritical,
			"the program refuses a twentieth of the submissions",
		},
		{
			"NotesSpentElsewhere", failed(`outcome="nullifier_spent"`, "0.1"), 15 * minute, severityWarning,
			"a tenth of the submissions spend notes that are already spent",
		},
		{
			"SubmissionsFail", failed(`outcome!~"completed|internal|root_not_found|program_error|nullifier_spent"`, "0.05", "outcome"), 15 * minute, severityWarning,
			"a twentieth of the submissions fail as {{ $labels.outcome }}",
		},
	}
}

func payerAlerts(in Input) []alert {
	payers := in.Pool.Spec.FeePayers
	list := []alert{
		{
			"AllFeePayersUnusable", "max(" + contract.MetricPayerUsable.Name + "{}) == 0", minute, severityCritical,
			"no fee payer can be used: new work is refused",
		},
		{
			"FeePayerUnusable", "max by (payer) (" + contract.MetricPayerUsable.Name + "{}) == 0", 10 * minute, severityWarning,
			"the fee payer {{ $labels.payer }} is not used: fund it",
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
	if low := lowBalance(ptr.Deref(payers.MinimumBalanceLamports, 0), ptr.Deref(payers.TargetBalanceLamports, 0)); low > 0 {
		list = append(list, alert{
			"FeePayerBalanceLow", fmt.Sprintf("max by (payer) (%s{}) < %d", contract.MetricPayerBalance.Name, low), minute, severityWarning,
			fmt.Sprintf("the fee payer {{ $labels.payer }} is nearly empty: fund it to %d lamports", ptr.Deref(payers.TargetBalanceLamports, 0)),
		})
	}
	if c := payers.SpendCaps; c.HourLamports > 0 || c.DayLamports > 0 || ptr.Deref(c.TransfersDayLamports, contract.DefaultSpendCapTransfersDay) > 0 {
		list = append(list, alert{
			"SpendCapNearlyReached", "min by (cap) (" + contract.MetricCapLeft.Name + "{}) < 0.2 * max by (cap) (" + contract.MetricCap.Name + "{})", 0, severityWarning,
			"four fifths of the spend cap {{ $labels.cap }} are used: find out by whom, or raise it",
		}, alert{
			"SpendCapReached", fmt.Sprintf("min by (cap) (%s{}) < %d", contract.MetricCapLeft.Name, transactLamports), 5 * minute, severityCritical,
			"the spend cap {{ $labels.cap }} has no room for another transaction: new work is refused",
		})
	}
	return list
}

// transactLamports is the minimum cost of a Transact, nearly all of it rent. A spend cap
// with less left counts as reached.
const transactLamports = 1_786_760

// runway returns an expression for the seconds for which the payers' funds above their
// minimum last, at the fleet's rate of spending over the window. The rate comes from the
// ledger, because a balance also changes when a payer is funded or rotated. All pods report
// the same counters, so that a rollout does not interrupt the rate. Returned rent is
// subtracted. A rate below one lamport a second counts as one: the funds last for years.
func runway(minimum int64, window, step string) string {
	subquery := "[" + window + ":" + step + "]"
	return fmt.Sprintf("sum(clamp_min(max by (payer) (%s{}) - %d, 0)) / clamp_min(sum(rate((max by (kind, cost) (%s{}))%s)) - sum(rate((max(%s{}))%s)), 1)",
		contract.MetricPayerBalance.Name, minimum, contract.MetricSpent.Name, subquery, contract.MetricReturned.Name, subquery)
}

// lowBalance is the balance at which somebody should fund a payer in working hours: a fifth
// of the way from the minimum to the target.
func lowBalance(minimum, target int64) int64 { return minimum + max(target-minimum, 0)/5 }

// treeNearlyFull is nine tenths of the leaves of a tree of height 32.
const treeNearlyFull = (1 << 32) / 10 * 9

func chainAlerts() []alert {
	return []alert{
		{
			"AllEndpointsDown", "max(" + contract.MetricRPCUp.Name + "{}) == 0", 2 * minute, severityCritical,
			"no RPC endpoint answers: no new work is accepted",
		},
		{
			"EndpointDown", "max by (endpoint) (" + contract.MetricRPCUp.Name + "{}) == 0", 15 * minute, severityWarning,
			"the RPC endpoint {{ $labels.endpoint }} does not answer",
		},
		{
			"EndpointLags", "min by (endpoint) (" + contract.MetricRPCLag.Name + "{}) > 300", 10 * minute, severityWarning,
			"the RPC endpoint {{ $labels.endpoint }} is behind the others",
		},
		{
			// A fork or a slow endpoint causes a few contradictions; a lying endpoint causes
			// more and more, its own and those of the endpoints that it contradicts.
			"EndpointContradicts", "sum by (endpoint) (increase(" + contract.MetricRPCContradictions.Name + "{}[15m])) > 10", 5 * minute, severityWarning,
			"the RPC endpoint {{ $labels.endpoint }} and others contradict each other",
		},
		{
			"FinalityStalled", "time() - max(" + contract.MetricFinalityAdvanced.Name + "{}) > 60 and on () max(" + contract.MetricRPCUp.Name + "{}) == 1", minute, severityCritical,
			"the chain's finalized slot stands still: accepted work waits, as in a migration of Solana's consensus",
		},
		{
			// Nothing is missing yet: the root of all leaves is compared with the chain's.
			"UnknownTransactionVersion", "max(" + contract.MetricIndexUnknown.Name + "{}) > 0", 0, severityWarning,
			"blocks hold transactions of a version that the relay cannot decode",
		},
		{
			"TreeContradictsProfile", "min(" + contract.MetricTreeCheck.Name + "{}) == 0", 0, severityCritical,
			"the pool's tree contradicts itself under the profile",
		},
		{
			// Once a relay has read the tree, its metric stays, whatever endpoints answer later.
			"PoolNotInitialised", "max(" + contract.MetricRPCUp.Name + "{}) == 1 unless on () max(" + contract.MetricTreeLeaves.Name + "{})", 10 * minute, severityCritical,
			"endpoints answer, but the pool's tree does not exist: the pool is not initialised, or is on another cluster",
		},
		{
			"TreeNearlyFull", fmt.Sprintf("max(%s{}) > %d", contract.MetricTreeLeaves.Name, treeNearlyFull), 10 * minute, severityWarning,
			"the pool's tree is nine tenths full: a full one accepts no more leaves",
		},
		{
			"CommitmentIndexBehind", "max(" + contract.MetricTreeLeaves.Name + "{}) - max(" + contract.MetricIndexServed.Name + "{}) > 50", 5 * minute, severityWarning,
			"the commitment list is behind the chain, and clients stop using it",
		},
		{
			"AttemptsExpire", shareAbove(contract.MetricAttempts.Name+`{,event="expired"}`, "0.1", contract.MetricAttempts.Name+`{,event="signed"}`, "15m", minRequests), 15 * minute, severityWarning,
			"transactions expire instead of landing",
		},
		{
			"TransactionsRolledBack", "sum(increase(" + contract.MetricAttempts.Name + `{,event="reopened"}[1h])) > 0`, 0, severityWarning,
			"a fork died under confirmed transactions; nothing is lost",
		},
	}
}

func routerAlerts() []alert {
	return []alert{
		{
			"RouterDown", "min(" + contract.MetricRouterBreakerOpen.Name + "{}) == 1", 5 * minute, severityCritical,
			"the swap router does not answer: each swap that is accepted meanwhile costs its user the pool's fee",
		},
		{
			"RouterRoutesRejected", "sum(increase(" + contract.MetricRouterRejected.Name + "{}[15m])) > 0", 0, severityCritical,
			"the swap router gave answers that contradict the request",
		},
		{
			"RouterFails", shareAbove(contract.MetricRouterRequests.Name+`{,outcome!="ok",outcome!="no_route"}`, "0.1", contract.MetricRouterRequests.Name+"{}", "15m", minRequests), 15 * minute, severityWarning,
			"a tenth of the swap router's answers are failures",
		},
		{
			"SwapsRefunded", shareAbove(contract.MetricSwapsEnded.Name+`{,outcome="refunded"}`, "0.2", contract.MetricSwapsEnded.Name+"{}", "1h", minRequests), 15 * minute, severityWarning,
			"a fifth of the swaps are refunded",
		},
	}
}
