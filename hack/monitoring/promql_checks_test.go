package monitoring_test

import (
	"slices"
	"testing"
)

func TestCheckFindsUnknownNames(t *testing.T) {
	t.Parallel()
	catalogue := loadMetrics(t)
	tests := map[string]struct {
		expr string
		want []string
	}{
		"a correct query":                {`max by (namespace, pool) (relaypool_backlog_submissions{namespace=~"a",pool=~"b"})`, nil},
		"a quantile of a histogram":      {`histogram_quantile(0.9, sum by (le, pool) (rate(relaypool_stage_duration_seconds_bucket{stage="confirm"}[5m])))`, nil},
		"two matched metrics":            {`max by (cap) (relaypool_spend_cap_left_lamports) / on (cap) max by (cap) (relaypool_spend_cap_lamports)`, nil},
		"not a query":                    {`max by (`, []string{"1:9: parse error: unclosed left parenthesis"}},
		"an unknown metric":              {`relaypool_backlog`, []string{`no metric is named "relaypool_backlog"`}},
		"a histogram without its suffix": {`relaypool_stage_duration_seconds`, []string{`no metric is named "relaypool_stage_duration_seconds"`}},
		"a suffix without a histogram":   {`relaypool_backlog_submissions_bucket`, []string{`no metric is named "relaypool_backlog_submissions_bucket"`}},
		"a label that the metric lacks":  {`relaypool_held_submissions{cause="x"}`, []string{"relaypool_held_submissions has no label cause"}},
		"grouping by a missing label":    {`sum by (payer) (relaypool_backlog_submissions)`, []string{"sum by (payer): no aggregated series has this label"}},
		"grouping by a dropped label":    {`max by (pod) (sum by (pool) (relaypool_backlog_submissions))`, []string{"max by (pod): no aggregated series has this label"}},
		"a rate of a gauge":              {`rate(relaypool_tree_leaves[5m])`, []string{"rate of relaypool_tree_leaves, which is a gauge"}},
		"the slope of a counter":         {`deriv(relaypool_spent_lamports_total[5m])`, []string{"deriv of relaypool_spent_lamports_total, which is a counter"}},
		"a quantile without buckets":     {`histogram_quantile(0.9, sum by (le) (rate(relaypool_stage_duration_seconds_count[5m])))`, []string{"sum by (le): no aggregated series has this label", "histogram_quantile of relaypool_stage_duration_seconds_count, which has no buckets"}},
		"a quantile of sums without le":  {`histogram_quantile(0.9, sum by (pool) (rate(relaypool_stage_duration_seconds_bucket[5m])))`, []string{"histogram_quantile of an expression without the label le"}},
		"a match on a missing label":     {`max by (pool) (relaypool_backlog_submissions) / on (pod) max by (pool) (relaypool_backlog_submissions)`, []string{"on (pod): its left side has no such label"}},
		"a rate of a counter's maximum":  {`rate((max by (kind) (relaypool_spent_lamports_total))[1h:1m])`, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := catalogue.check(tc.expr); !slices.Equal(got, tc.want) {
				t.Errorf("%s: %q, want %q", tc.expr, got, tc.want)
			}
		})
	}
}
