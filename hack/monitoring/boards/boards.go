// Package boards has the project's dashboards: fleet, relay and money.
package boards

import (
	"fmt"
	"strings"

	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/relay/contract"
)

// Folder is where the dashboards are, from the checkout's root: the chart makes
// ConfigMaps of them.
const Folder = "charts/relaypool/dashboards"

// File is a dashboard's, in Folder.
func File(b *grafana.Board) string { return strings.TrimPrefix(b.UID, "relaypool-") + ".json" }

// All lists the dashboards.
func All() []*grafana.Board { return []*grafana.Board{Fleet(), Relay(), Money()} }

// fleets are what the reader chooses: RelayPools by namespace and name. A fleet
// that is held has no relay that tells of it, and the operator does.
func fleets() []grafana.Variable {
	const known = `{__name__=~"relaypool_build_info|relaypool_operator_pool_condition"`
	return []grafana.Variable{
		{Name: "namespace", Title: "Namespace", Values: "label_values(" + known + "}, namespace)"},
		{Name: "pool", Title: "Pool", Values: "label_values(" + known + `,namespace=~"$namespace"}, pool)`},
	}
}

// Rate is the window of rates, which Grafana chooses by scrape interval and zoom.
const Rate = "[$__rate_interval]"

// scoped fills the reader's choice in, as the alerts' builder fills in a fleet: {}
// after a metric, or {, before matchers of its own.
func scoped(expr string) string {
	const of = `namespace=~"$namespace",pool=~"$pool"`
	return strings.NewReplacer("{}", "{"+of+"}", "{,", "{"+of+",").Replace(expr)
}

// query makes a query of an expression with placeholders.
func query(legend, expr string) grafana.Query {
	return grafana.Query{Expr: scoped(expr), Legend: legend}
}

// once is a figure of the whole fleet, which every pod tells: their maximum, never
// their sum.
func once(m contract.Metric, labels ...string) string {
	return fmt.Sprintf("max by (%s) (%s{})", strings.Join(append([]string{"namespace", "pool"}, labels...), ", "), m.Name)
}

// ofCluster is a figure of kube-state-metrics for each fleet, by the label that has
// the name of a fleet's object: its own name, or keda-hpa- before it. The reader's
// choice begins with All, any name, so that it takes others' objects out that the
// name of no RelayPool is known for. One whose pods are gone is known for six hours
// without an operator that tells of it: that is when somebody looks.
func ofCluster(metric, label string) string {
	return fmt.Sprintf(`max by (namespace, pool) (label_replace(%s{namespace=~"$namespace",%s=~"(keda-hpa-)?($pool)"}, "pool", "$1", %q, "(?:keda-hpa-)?(.+)")) and on (namespace, pool) (last_over_time(%s{}[6h]) or %s{})`,
		metric, label, label, contract.MetricBuildInfo.Name, contract.MetricOperatorPoolCondition.Name)
}

// share is a part of a whole, both figures that may be 0: of nothing there is none.
func share(part, whole string) string { return part + " / (" + whole + " > 0)" }

// total is what the pods count each for itself, together, a second.
func total(m contract.Metric, matcher string, labels ...string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}%s))", strings.Join(append([]string{"namespace", "pool"}, labels...), ", "), m.Name, matcher, Rate)
}

// each is what every pod counts, a second.
func each(m contract.Metric, matcher string, labels ...string) string {
	return total(m, matcher, append([]string{"pod"}, labels...)...)
}

// gauge is what every pod tells of itself.
func gauge(m contract.Metric, labels ...string) string {
	return once(m, append([]string{"pod"}, labels...)...)
}

// quantile is of a histogram over all pods, by labels.
func quantile(q float64, m contract.Metric, matcher string, labels ...string) string {
	return fmt.Sprintf("histogram_quantile(%g, sum by (%s) (rate(%s_bucket{%s}%s)))", q, strings.Join(append([]string{"namespace", "pool", "le"}, labels...), ", "), m.Name, matcher, Rate)
}

// percentiles are the three that tell a crowd's time from its unlucky ones'.
func percentiles(m contract.Metric, matcher string) (all []grafana.Query) {
	for _, q := range []float64{0.5, 0.95, 0.99} {
		all = append(all, query(fmt.Sprintf("{{pool}} p%g", q*100), quantile(q, m, matcher)))
	}
	return all
}
