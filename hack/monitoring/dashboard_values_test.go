package monitoring_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/relaypool/relaypool/hack/monitoring/dashboard"
)

// samples is the number of samples of each series, one a minute.
const samples = 400

// evaluate returns the result of a query at a minute, over series in promtool's notation.
func evaluate(t *testing.T, series []string, expr string, minute int) promql.Vector {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(series, "\n  ")+"\n")
	query, err := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000).NewInstantQuery(t.Context(), storage, nil, expr, time.Unix(int64(minute)*60, 0))
	if err != nil {
		t.Fatalf("%v: %s", err, expr)
	}
	defer query.Close()
	answer, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%v: %s", err, expr)
	}
	return slices.Clone(answer)
}

// matchingSeries returns a series that a selector matches.
func matchingSeries(u *use) string {
	values := map[string]string{"namespace": "pools", "pool": "shielded"}
	for _, l := range u.metric.labels {
		values[l] = "v"
	}
	for _, m := range u.matchers {
		if m.Type == labels.MatchEqual {
			values[m.Name] = m.Value
		}
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, values[name]))
	}
	return u.series + "{" + strings.Join(pairs, ",") + "}"
}

// A share of nothing is NaN, and a division by zero is infinite: Grafana draws neither, and an
// axis up to infinity hides all other values. Quantiles are exempt: a quantile of nothing only
// makes a gap in its curve.
func TestIdleFleetHasFiniteValues(t *testing.T) {
	t.Parallel()
	catalogue := loadMetrics(t)
	panels(t, func(d *dashboard.Dashboard, p *dashboard.Panel) {
		for _, q := range p.Targets {
			expr := dashboard.Fill(q.Expr, ".+", ".+", "5m")
			if strings.Contains(expr, "histogram_quantile") {
				continue
			}
			uses, _ := catalogue.check(expr)
			// In the first case no counter rises, in each other case all counters but one rise.
			for constant := -1; constant < len(uses); constant++ {
				series := map[string]string{}
				for i := range uses {
					values := "5+3"
					if uses[i].metric.kind != gauge && (constant < 0 || constant == i) {
						values = "5+0"
					}
					if s := matchingSeries(&uses[i]); series[s] != "5+0" {
						series[s] = values
					}
				}
				var all []string
				for s, values := range series {
					all = append(all, fmt.Sprintf("%s %sx%d", s, values, samples))
				}
				for _, answer := range evaluate(t, all, expr, samples) {
					if math.IsNaN(answer.F) || math.IsInf(answer.F, 0) {
						t.Errorf("%s, %s: %v in an idle fleet: %s", d.Title, p.Title, answer.F, expr)
					}
				}
			}
		}
	})
}

// The reader's choice All matches every name, but Deployments and autoscalers of other programs
// must not be shown.
func TestClusterPanelsShowOnlyFleets(t *testing.T) {
	t.Parallel()
	series := []string{
		`relaypool_build_info{namespace="pools",pool="shielded",pod="a"} 1x300 stale`,
		`relaypool_operator_pool_condition{namespace="pools",pool="held",condition="Ready",status="False",reason="Held"} 1x400`,
	}
	for _, selector := range []string{`namespace="pools",%s="shielded"`, `namespace="pools",%s="held"`, `namespace="pools",%s="shop"`, `namespace="web",%s="shielded"`} {
		for metric, label := range map[string]string{
			"kube_deployment_spec_replicas": "deployment", "kube_deployment_status_replicas_ready": "deployment",
			"kube_horizontalpodautoscaler_status_desired_replicas": "horizontalpodautoscaler", "kube_horizontalpodautoscaler_status_current_replicas": "horizontalpodautoscaler",
			"kube_horizontalpodautoscaler_spec_max_replicas": "horizontalpodautoscaler",
		} {
			line := metric + "{" + fmt.Sprintf(selector, label) + "} 2x400"
			if label == "horizontalpodautoscaler" && strings.Contains(selector, "held") {
				line = strings.Replace(line, `"held"`, `"keda-hpa-held"`, 1)
			}
			series = append(series, line)
		}
	}
	tests := map[string]struct {
		minute int
		pool   string
		want   []string
	}{
		"all": {200, ".+", []string{"pools/held", "pools/shielded"}},
		// This case is an investigation after an incident.
		"all, after the last pod has gone": {400, ".+", []string{"pools/held", "pools/shielded"}},
		"one":                              {200, "held", []string{"pools/held"}},
	}
	for name, tc := range tests {
		shown := 0
		panels(t, func(d *dashboard.Dashboard, p *dashboard.Panel) {
			for _, q := range p.Targets {
				if !strings.Contains(q.Expr, "kube_") {
					continue
				}
				shown++
				var got []string
				for _, answer := range evaluate(t, series, dashboard.Fill(q.Expr, ".+", tc.pool, "5m"), tc.minute) {
					pool := answer.Metric.Get("pool") + answer.Metric.Get("deployment") + answer.Metric.Get("horizontalpodautoscaler")
					got = append(got, answer.Metric.Get("namespace")+"/"+pool)
				}
				slices.Sort(got)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: %s, %s (-want +got):\n%s", name, d.Title, p.Title, diff)
				}
			}
		})
		if shown < 5 {
			t.Errorf("%s: %d queries of Deployments and autoscalers, want at least 5", name, shown)
		}
	}
}

// A payer at its minimum is not used: its runway is zero.
func TestRunwayCountsTheBalanceAboveTheMinimum(t *testing.T) {
	t.Parallel()
	const selector = `namespace="pools",pool="shielded"`
	series := []string{ // 1 000 000 lamports a second are spent, a tenth comes back
		`relaypool_spent_lamports_total{` + selector + `,pod="a",kind="swap",cost="rent"} 0+60000000x400`,
		`relaypool_returned_lamports_total{` + selector + `,pod="a"} 0+6000000x400`,
		`relaypool_fee_payer_minimum_lamports{` + selector + `,pod="a"} 50000000x400`,
		`relaypool_fee_payer_minimum_lamports{` + selector + `,pod="b"} 50000000x400`,
		`relaypool_fee_payer_balance_lamports{` + selector + `,pod="a",payer="dry"} 50000000x400`,
		`relaypool_fee_payer_balance_lamports{` + selector + `,pod="a",payer="drier"} 10000000x400`,
		`relaypool_fee_payer_balance_lamports{` + selector + `,pod="b",payer="wet"} 6530000000x400`, // 2 h at 900 000 a second above the minimum
	}
	shown := 0
	panels(t, func(d *dashboard.Dashboard, p *dashboard.Panel) {
		if p.FieldConfig.Defaults.Unit != "h" {
			return
		}
		for _, q := range p.Targets {
			shown++
			answer := evaluate(t, series, dashboard.Fill(q.Expr, ".+", ".+", "5m"), samples)
			if len(answer) != 1 || math.Abs(answer[0].F-2) > 1e-6 {
				t.Errorf("%s, %s: %v, want 2 h", d.Title, p.Title, answer)
			}
		}
	})
	if shown < 2 {
		t.Errorf("%d queries of the runway, want at least 2", shown)
	}
}
