package build

import (
	"fmt"
	"strings"
	"time"

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
