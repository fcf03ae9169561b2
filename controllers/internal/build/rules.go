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

// runbooks is the address of the folder with the alerts' pages, each named after its alert. The
// address contains the release that made the alert, because a later release may behave
// differently.
const runbooks = "https://github.com/relaypool/relaypool/blob/v" + contract.Version + "/docs/reference/alerts/"

// alert is one rule that a person can act on.
type alert struct {
	// name is the name of the alert without alertPrefix.
	name string
	// expr has a placeholder after each metric: {}, or {,event="signed"} with the metric's own
	// matcher. scope inserts the labels that select this fleet.
	expr     string
	duration time.Duration
	severity string
	// summary may use the labels and the value of expr's result.
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

// scope inserts the fleet's labels into the placeholders.
func scope(expr string, in Input) string {
	labels := fmt.Sprintf("%s=%q,%s=%q", labelNamespace, in.Pool.Namespace, labelPool, in.Pool.Name)
	return strings.NewReplacer("{}", "{"+labels+"}", "{,", "{"+labels+",").Replace(expr)
}

// alerts returns the alerts for the fleet that the RelayPool declares.
func alerts(in Input) []alert {
	list := append(fleetAlerts(), payerAlerts(in)...)
	list = append(list, chainAlerts()...)
	list = append(list, failureAlerts()...)
	if in.Pool.Spec.Swap != nil {
		list = append(list, routerAlerts()...)
	}
	// A fleet of 0 pods reports nothing. That is not a failure, so the fleet does not get this
	// alert.
	if !in.Withheld && ptr.Deref(in.Replicas, 1) > 0 {
		list = append(list, alert{
			"NoRelayReports", "absent(" + contract.MetricBacklog.Name + "{})", 5 * minute, severityCritical,
			"no relay reports the backlog: none runs, none is scraped, or the database is unreachable",
		})
	}
	return list
}

// lastHourCount returns an expression for how often a rare event was counted in the last hour.
// The first event creates its series with the value 1. increase() does not count that event,
// so each new series counts as one event.
func lastHourCount(m contract.Metric, matcher string) string {
	selector := m.Name + "{," + matcher + "}"
	return "(sum(increase(" + selector + "[1h])) or vector(0)) + (count(" + selector + " > 0 unless " + selector + " offset 1h) or vector(0))"
}

// An alert on the share of failures fires only above these counts of failures. A large share
// of few requests may be chance: in a fleet that is hardly used, a single failure would page
// somebody. minRetriedFailures is for failures that clients retry by themselves, such as 503.
const (
	minFailures        = 3
	minRetriedFailures = 10
)

// shareAbove returns an expression about the counts of two metrics within the window. It is true
// if the count of bad exceeds minCount, and also exceeds the given share of the count of all. bad
// and all are metrics with placeholders, and by has the labels by which bad is grouped. If the
// alert's duration is as long as the window, the alert does not fire for a short burst, which
// would be over when somebody looks.
func shareAbove(bad, share, all, window string, minCount int, by ...string) string {
	sum, join := "sum", ">"
	if len(by) > 0 {
		sum, join = "sum by ("+strings.Join(by, ", ")+") ", "> on () group_left ()"
	}
	return fmt.Sprintf("%s(increase(%s[%s])) %s clamp_min(%s * sum(increase(%s[%s])), %d)", sum, bad, window, join, share, all, window, minCount)
}

func routerAlerts() []alert {
	return []alert{
		{
			"RouterDown", "min(" + contract.MetricRouterBreakerOpen.Name + "{}) == 1", 5 * minute, severityCritical,
			"no swap router answers: each swap that is accepted meanwhile costs its user the pool's fee",
		},
		{
			"RouterRoutesRejected", "sum(increase(" + contract.MetricRouterRejected.Name + "{}[15m])) > 0", 0, severityCritical,
			"a swap router gave answers that contradict the request",
		},
		{
			"RouterFails", fmt.Sprintf(`sum by (router) (increase(%[1]s{,outcome!="ok",outcome!="no_route"}[15m])) > clamp_min(0.1 * sum by (router) (increase(%[1]s{}[15m])), %[2]d)`, contract.MetricRouterRequests.Name, minFailures), 15 * minute, severityWarning,
			"a tenth of the calls to the swap router {{ $labels.router }} fail",
		},
		{
			"SwapsRefunded", shareAbove(contract.MetricSwapsEnded.Name+`{,outcome="refunded"}`, "0.2", contract.MetricSwapsEnded.Name+"{}", "1h", minFailures), 15 * minute, severityWarning,
			"a fifth of the swaps are refunded",
		},
	}
}
