package monitoring_test

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/monitoring/dashboard"
	"github.com/relaypool/relaypool/relay/contract"
)

// filled returns a query for every RelayPool of a namespace.
func filled(expr string) string { return dashboard.Fill(expr, "pools", ".+", "1m") }

func dashboards(t *testing.T) []*dashboard.Dashboard {
	t.Helper()
	all, err := dashboard.Read(root)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d dashboards, error %v; want fleet, money and relay", len(all), err)
	}
	return all
}

// panels calls f for each panel of each dashboard.
func panels(t *testing.T, f func(d *dashboard.Dashboard, p *dashboard.Panel)) {
	t.Helper()
	for _, d := range dashboards(t) {
		for i := range d.Panels {
			if d.Panels[i].Type != "row" {
				f(d, &d.Panels[i])
			}
		}
	}
}

// On-call readers need an explanation of each panel. A panel's thresholds are in ascending order,
// and their colours go from green to red or from red to green.
func TestPanelsAreComplete(t *testing.T) {
	t.Parallel()
	complete := regexp.MustCompile(`^\S[^\n]*\n\n\*\*Good:\*\* \S[^\n]*\n\n\*\*Bad:\*\* \S[^\n]*\n\n\*\*Do:\*\* \S[^\n]*$`)
	titles := map[string]string{}
	panels(t, func(d *dashboard.Dashboard, p *dashboard.Panel) {
		if !complete.MatchString(p.Description) {
			t.Errorf("%s, %s: the description is %q, want what it shows, **Good:**, **Bad:** and **Do:**", d.Title, p.Title, p.Description)
		}
		if p.Title == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 || titles[d.UID+p.Title] != "" {
			t.Errorf("%s, %q: want a title of its own, a unit and a query", d.Title, p.Title)
		}
		titles[d.UID+p.Title] = p.Title
		var colours []string
		last := math.Inf(-1)
		for i, s := range p.FieldConfig.Defaults.Thresholds.Steps {
			if colours = append(colours, s.Color); i == 0 {
				continue
			}
			if s.Value == nil || *s.Value <= last {
				t.Errorf("%s, %s: threshold %d is not above the previous one", d.Title, p.Title, i)
				continue
			}
			last = *s.Value
		}
		if order := strings.Join(colours, " "); !slices.Contains([]string{"green", "green red", "green orange red", "red orange green"}, order) {
			t.Errorf("%s, %s: the colours of its thresholds are %s, want an order from green to red or from red to green", d.Title, p.Title, order)
		}
	})
}

var inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

func TestPanelsUseExistingMetrics(t *testing.T) {
	t.Parallel()
	catalogue := loadMetrics(t)
	panels(t, func(d *dashboard.Dashboard, p *dashboard.Panel) {
		for _, q := range p.Targets {
			expr := filled(q.Expr)
			if strings.Contains(strings.ReplaceAll(expr, `"$1"`, ""), "$") {
				t.Errorf("%s, %s: a variable is not replaced in %s", d.Title, p.Title, expr)
			}
			uses, faults := catalogue.check(expr)
			for _, f := range faults {
				t.Errorf("%s, %s: %s: %s", d.Title, p.Title, f, expr)
			}
			for _, u := range uses {
				if !limitedToSelection(&u) {
					t.Errorf("%s, %s: %s is not limited to the selected RelayPools", d.Title, p.Title, u.series)
				}
			}
			labels, err := catalogue.labels(expr)
			if err != nil {
				continue // reported above
			}
			for _, m := range inLegend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !slices.Contains(labels, m[1]) {
					t.Errorf("%s, %s: the legend has the label %s, which the query drops: %s", d.Title, p.Title, m[1], expr)
				}
			}
			if q.Datasource.UID != "${datasource}" {
				t.Errorf("%s, %s: the data source is %q, want the one that the reader selects", d.Title, p.Title, q.Datasource.UID)
			}
			if p.Type != "table" && q.LegendFormat == "" {
				t.Errorf("%s, %s: a query has no legend", d.Title, p.Title)
			}
		}
	})
}

// limitedToSelection reports whether a selector is limited to the RelayPools that the reader
// has selected, or its metric has no RelayPool.
func limitedToSelection(u *use) bool {
	var names []string
	for _, m := range u.matchers {
		names = append(names, m.Name)
	}
	switch u.metric.source {
	case ofCluster:
		return slices.Contains(names, "namespace") && (slices.Contains(names, "deployment") || slices.Contains(names, "horizontalpodautoscaler"))
	case ofOperator:
		if !slices.Contains(u.metric.labels, "pool") {
			return true // a metric of the operator's process
		}
	}
	return slices.Contains(names, "namespace") && slices.Contains(names, "pool")
}

// Every pod exposes the same figures of the fleet: a sum would multiply them by the number of
// pods.
func TestFleetMetricsAreNotSummed(t *testing.T) {
	t.Parallel()
	global := []contract.Metric{
		contract.MetricBacklog, contract.MetricBacklogAge, contract.MetricHeld, contract.MetricOpen, contract.MetricSpent, contract.MetricSpentToday,
		contract.MetricReturned, contract.MetricReceived, contract.MetricCap, contract.MetricCapLeft, contract.MetricSwaps, contract.MetricSwapOldestFunded,
		contract.MetricSwapsOverdue, contract.MetricLedgerUnknown, contract.MetricLedgerGaps, contract.MetricLedgerDifference, contract.MetricTreeLeaves,
		contract.MetricPayerBalance, contract.MetricPayerMinimum, contract.MetricPayerUsable, contract.MetricRPCUp,
	}
	summed := regexp.MustCompile(`(sum|avg|count) by \([^)]*\) \((?:rate\()?(relaypool_\w+)`)
	panels(t, func(d *dashboard.Dashboard, p *dashboard.Panel) {
		for _, q := range p.Targets {
			for _, m := range summed.FindAllStringSubmatch(q.Expr, -1) {
				if slices.ContainsFunc(global, func(g contract.Metric) bool { return g.Name == m[2] }) {
					t.Errorf("%s, %s: %s of %s, which every pod exposes: %s", d.Title, p.Title, m[1], m[2], q.Expr)
				}
			}
		}
	})
}

func TestEveryMetricIsOnADashboard(t *testing.T) {
	t.Parallel()
	var shown strings.Builder
	panels(t, func(_ *dashboard.Dashboard, p *dashboard.Panel) {
		for _, q := range p.Targets {
			shown.WriteString(q.Expr + "\n")
		}
	})
	for _, m := range append(contract.Metrics(), contract.OperatorMetrics()...) {
		if !regexp.MustCompile(`\b` + m.Name + `(_bucket|_sum)?\b`).MatchString(shown.String()) {
			t.Errorf("no dashboard shows %s", m.Name)
		}
	}
}

var alertName = regexp.MustCompile(`\bRelay[pP]ool[A-Z]\w+`)

// Every alert that a panel's description mentions exists.
func TestPanelsMentionOnlyExistingAlerts(t *testing.T) {
	t.Parallel()
	fleet, own := everyAlert(t)
	names := map[string]bool{"RelayPools": true}
	for _, r := range append(fleet, own...) {
		names[r.Alert] = true
	}
	panels(t, func(d *dashboard.Dashboard, p *dashboard.Panel) {
		for _, name := range alertName.FindAllString(p.Description, -1) {
			if !names[name] {
				t.Errorf("%s, %s mentions the alert %s, which does not exist", d.Title, p.Title, name)
			}
		}
	})
}

// Grafana draws overlapping panels on top of each other without a warning.
func TestPanelsDoNotOverlapOrShareIDs(t *testing.T) {
	t.Parallel()
	for _, d := range dashboards(t) {
		ids, taken := map[int]string{}, map[[2]int]string{}
		for i := range d.Panels {
			p := &d.Panels[i]
			if other, ok := ids[p.ID]; ok {
				t.Errorf("%s: %s and %s have the ID %d", d.Title, other, p.Title, p.ID)
			}
			ids[p.ID] = p.Title
			at := p.GridPos
			if at.X < 0 || at.X+at.W > dashboard.Columns || at.W < 1 || at.H < 1 {
				t.Errorf("%s: %s is at %+v, outside of the grid", d.Title, p.Title, at)
			}
			for x := range at.W {
				for y := range at.H {
					place := [2]int{at.X + x, at.Y + y}
					if other, ok := taken[place]; ok {
						t.Fatalf("%s: %s overlaps %s", d.Title, p.Title, other)
					}
					taken[place] = p.Title
				}
			}
		}
	}
}
