package boards

import "strings"

// Choice is what a reader has chosen, and what Grafana makes of its own variables.
type Choice struct {
	// Namespace and Pool are regular expressions.
	Namespace, Pool string
	// RateInterval is the window of rates, such as 1m.
	RateInterval string
}

// Fill puts a choice into a query, as Grafana does before it asks Prometheus.
func Fill(expr string, c Choice) string {
	return strings.NewReplacer("$namespace", c.Namespace, "$pool", c.Pool, "$__rate_interval", c.RateInterval).Replace(expr)
}
