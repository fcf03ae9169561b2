package build

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/relay/contract"
)

// The severities of alerts: wake somebody, or have a look in the morning.
const (
	severityCritical = "critical"
	severityWarning  = "warning"
)

// runbookPage is where alerts lead to. Which site has the documentation is for
// the installation to say.
const runbookPage = "docs/operations.md"

// alert is one rule that a person can act on.
type alert struct {
	// name follows the prefix that all share.
	name string
	// expr has a placeholder {} after each metric, where the labels go that find
	// this fleet, or {,} before a matcher of its own, such as {,event="signed"}.
	expr     string
	lasting  time.Duration
	severity string
	// summary may use the labels that expr leaves.
	summary string
	// page is the heading in runbookPage that says what to do.
	page string
}

const (
	alertPrefix = "Relaypool"
	minute      = time.Minute
)

// rule is the alert as Prometheus takes it.
func (a alert) rule(in Input) map[string]any {
	r := map[string]any{
		"alert": alertPrefix + a.name,
		"expr":  scope(a.expr, in),
		"labels": map[string]any{
			"severity": a.severity, labelNamespace: in.Pool.Namespace, labelPool: in.Pool.Name,
		},
		"annotations": map[string]any{
			"summary":     fmt.Sprintf("RelayPool %s/%s: %s", in.Pool.Namespace, in.Pool.Name, a.summary),
			"runbook_url": runbookPage + "#" + anchor(a.page),
		},
	}
	if a.lasting > 0 {
		r["for"] = fmt.Sprintf("%dm", a.lasting/minute)
	}
	return r
}

// scope fills the fleet's labels in.
func scope(expr string, in Input) string {
	labels := fmt.Sprintf("%s=%q,%s=%q", labelNamespace, in.Pool.Namespace, labelPool, in.Pool.Name)
	return strings.NewReplacer("{}", "{"+labels+"}", "{,", "{"+labels+",").Replace(expr)
}

// anchor is a heading's, as forges make it.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), " ", "-")
}

// alerts are those of the fleet as it is declared.
func alerts(in Input) []alert {
	list := append(fleetAlerts(), payerAlerts(in)...)
	list = append(list, chainAlerts()...)
	if in.Pool.Spec.Swap != nil {
		list = append(list, routerAlerts()...)
	}
	// A fleet that is to have no pod gives no sample, and nothing is wrong.
	if !in.Held && ptr.Deref(in.Replicas, 1) > 0 {
		list = append(list, alert{
			"Silent", "absent(" + contract.MetricBacklog.Name + "{})", 5 * minute, severityCritical,
			"no relay tells the backlog: none runs, none is scraped, or the database is away", "The database is away",
		})
	}
	return list
}

func fleetAlerts() []alert {
	return []alert{
		{
			"BacklogOld", "max(" + contract.MetricBacklogAge.Name + "{}) > 60", 2 * minute, severityCritical,
			"accepted work has waited for over a minute and nobody takes it", "Work waits and nobody takes it",
		},
		{
			"WorkHeld", "max by (reason) (" + contract.MetricHeld.Name + `{,reason!~"(swap|router)_.+|no_route"}) > 0`, 5 * minute, severityCritical,
			"accepted work waits for {{ $labels.reason }}, which more pods would not mend", "At three in the morning",
		},
		{
			// A swap that is under way when swaps are turned off has to end all the same.
			"SwapOverdue", "max(" + contract.MetricSwapsOverdue.Name + "{}) > 0", 3 * minute, severityCritical,
			"a swap is past its timeout, neither executed nor refunded: a user's funds wait", "A swap is overdue",
		},
		{
			"RelayFault", "(sum(increase(" + contract.MetricSubmissions.Name + `{,outcome="internal"}[1h])) or vector(0)) + (sum(increase(` +
				contract.MetricAttempts.Name + `{,event="panic"}[1h])) or vector(0)) > 0`, 0, severityWarning,
			"a fault of the relay itself", "A fault of the relay",
		},
		{
			"ProcessDied", "sum(increase(" + contract.MetricLeases.Name + `{,event="reaped"}[15m])) > 0`, 0, severityWarning,
			"a relay died without handing its work over", "A process died",
		},
		{
			"RetentionBehind", "sum(increase(" + contract.MetricUpkeepRuns.Name + `{,job="retention",outcome="done"}[2h])) == 0`, 10 * minute, severityWarning,
			"rows that are over have not been deleted for two hours", "Retention is behind",
		},
	}
}

func payerAlerts(in Input) []alert {
	payers := in.Pool.Spec.FeePayers
	list := []alert{
		{
			"PayersDry", "max(" + contract.MetricPayerUsable.Name + "{}) == 0", minute, severityCritical,
			"no fee payer can be used: new work is refused", "All payers are dry",
		},
		{
			"PayerDry", "max by (payer) (" + contract.MetricPayerUsable.Name + "{}) == 0", 10 * minute, severityWarning,
			"the fee payer {{ $labels.payer }} is not used: fund it", "One payer is dry",
		},
		{
			"BalancesOld", "min by (payer) (" + contract.MetricPayerAge.Name + "{}) > 120", 5 * minute, severityWarning,
			"the balance of {{ $labels.payer }} has not been read for minutes", "No endpoint answers",
		},
		{
			"UnknownSignature", "max(" + contract.MetricLedgerUnknown.Name + "{}) > min(min_over_time(" + contract.MetricLedgerUnknown.Name + "{}[1h]))", 0, severityCritical,
			"a fee payer signed a transaction that the database does not know", "An unknown signature in the ledger",
		},
		{
			"LedgerDifference", "max by (payer) (" + contract.MetricLedgerDifference.Name + "{}) != 0", 10 * minute, severityWarning,
			"the ledger does not add up for {{ $labels.payer }}", "The ledger does not add up",
		},
		{
			"LedgerGap", "max by (payer) (" + contract.MetricLedgerGaps.Name + "{}) > 0", 0, severityWarning,
			"no endpoint has the whole history of {{ $labels.payer }}", "History is too short",
		},
		{
			"LedgerBehind", "max by (payer) (" + contract.MetricLedgerAge.Name + "{}) > 1200", 10 * minute, severityWarning,
			"the ledger of {{ $labels.payer }} is behind the chain", "The ledger is behind",
		},
	}
	if low := lowBalance(ptr.Deref(payers.MinimumBalance, 0), ptr.Deref(payers.TargetBalance, 0)); low > 0 {
		list = append(list, alert{
			"PayerLow", fmt.Sprintf("max by (payer) (%s{}) < %d", contract.MetricPayerBalance.Name, low), minute, severityWarning,
			fmt.Sprintf("the fee payer {{ $labels.payer }} is nearly empty: fund it to %d lamports", ptr.Deref(payers.TargetBalance, 0)), "Fee payers",
		})
	}
	if c := payers.SpendCaps; c.Hour > 0 || c.Day > 0 || c.TransfersDay > 0 {
		list = append(list, alert{
			"SpendCapNear", "min by (cap) (" + contract.MetricCapLeft.Name + "{}) < 0.2 * max by (cap) (" + contract.MetricCap.Name + "{})", 0, severityWarning,
			"four fifths of the spend cap {{ $labels.cap }} are used: find out by whom, or raise it", "A cap is reached",
		})
	}
	return list
}

// lowBalance is when a payer wants funds in daylight: a fifth of what it was
// funded with above the minimum is left.
func lowBalance(minimum, target int64) int64 { return minimum + max(target-minimum, 0)/5 }

func chainAlerts() []alert {
	return []alert{
		{
			"EndpointsDown", "max(" + contract.MetricRPCUp.Name + "{}) == 0", 2 * minute, severityCritical,
			"no RPC endpoint answers: nothing new is taken", "No endpoint answers",
		},
		{
			"EndpointDown", "max by (endpoint) (" + contract.MetricRPCUp.Name + "{}) == 0", 15 * minute, severityWarning,
			"the RPC endpoint {{ $labels.endpoint }} does not answer", "One endpoint is sick",
		},
		{
			"EndpointLags", "min by (endpoint) (" + contract.MetricRPCLag.Name + "{}) > 300", 10 * minute, severityWarning,
			"the RPC endpoint {{ $labels.endpoint }} is behind the others", "An endpoint lags",
		},
		{
			"RootMismatch", "min(" + contract.MetricTreeCheck.Name + "{}) == 0", 0, severityCritical,
			"the pool's tree contradicts itself under the profile", "The tree contradicts itself",
		},
		{
			"IndexBehind", "max(" + contract.MetricTreeLeaves.Name + "{}) - max(" + contract.MetricIndexServed.Name + "{}) > 50", 5 * minute, severityWarning,
			"the commitment list is behind the chain, and clients stop using it", "The commitment list stands still",
		},
		{
			"AttemptsExpire", "sum(rate(" + contract.MetricAttempts.Name + `{,event="expired"}[15m])) > 0.1 * sum(rate(` + contract.MetricAttempts.Name + `{,event="signed"}[15m]))`, 15 * minute, severityWarning,
			"transactions expire instead of landing", "Transactions land late or expire",
		},
		{
			"ForkDied", "sum(increase(" + contract.MetricAttempts.Name + `{,event="reopened"}[1h])) > 0`, 0, severityWarning,
			"a fork died under confirmed transactions; nothing is lost", "A fork died",
		},
	}
}

func routerAlerts() []alert {
	return []alert{
		{
			"RouterAway", "min(" + contract.MetricRouterBreakerOpen.Name + "{}) == 1", 5 * minute, severityCritical,
			"the swap router does not answer: each swap that is accepted meanwhile costs its user the pool's fee", "The router is unavailable",
		},
		{
			"RouterHostile", "sum(increase(" + contract.MetricRouterHostile.Name + "{}[15m])) > 0", 0, severityCritical,
			"the swap router gave answers that contradict the question", "A router is hostile",
		},
		{
			"RouterFails", "sum(rate(" + contract.MetricRouterRequests.Name + `{,outcome!="ok",outcome!="no_route"}[15m])) > 0.1 * sum(rate(` + contract.MetricRouterRequests.Name + "{}[15m]))", 15 * minute, severityWarning,
			"a tenth of the swap router's answers are failures", "The router is unavailable",
		},
		{
			"RefundsNearExecutions", "sum(increase(" + contract.MetricSwapsSettled.Name + `{,outcome="refunded"}[1h])) > 0.2 * sum(increase(` + contract.MetricSwapsSettled.Name + "{}[1h]))", 15 * minute, severityWarning,
			"a fifth of the swaps are refunded", "Refunds are near executions",
		},
	}
}
