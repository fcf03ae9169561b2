package boards_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/monitoring/alerts"
	"github.com/relaypool/relaypool/hack/monitoring/boards"
	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/hack/monitoring/query"
	"github.com/relaypool/relaypool/relay/contract"
)

const root = "../../.."

func filled(expr string) string {
	return boards.Fill(expr, boards.Choice{Namespace: "pools", Pool: ".+", RateInterval: "1m"})
}

// panels calls f for each panel of each dashboard.
func panels(f func(b *grafana.Board, p *grafana.Panel)) {
	for _, b := range boards.All() {
		for i := range b.Rows {
			for j := range b.Rows[i].Panels {
				f(b, &b.Rows[i].Panels[j])
			}
		}
	}
}

var inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

func TestPanelsAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	catalogue, err := query.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	panels(func(b *grafana.Board, p *grafana.Panel) {
		for _, q := range p.Queries {
			expr := filled(q.Expr)
			if strings.Contains(strings.ReplaceAll(expr, `"$1"`, ""), "$") {
				t.Errorf("%s, %s: a variable is left in %s", b.Title, p.Title, expr)
			}
			uses, faults := catalogue.Check(expr)
			for _, f := range faults {
				t.Errorf("%s, %s: %s: %s", b.Title, p.Title, f, expr)
			}
			for _, u := range uses {
				if !ofTheChoice(&u) {
					t.Errorf("%s, %s: %s is not of the RelayPools that are chosen", b.Title, p.Title, u.Series)
				}
			}
			labels, err := catalogue.Labels(expr)
			if err != nil {
				continue // told above
			}
			for _, m := range inLegend.FindAllStringSubmatch(q.Legend, -1) {
				if !slices.Contains(labels, m[1]) {
					t.Errorf("%s, %s: the legend tells the label %s, which the query does not keep: %s", b.Title, p.Title, m[1], expr)
				}
			}
			if p.Kind != grafana.Table && q.Legend == "" {
				t.Errorf("%s, %s: a query has no legend", b.Title, p.Title)
			}
		}
	})
}

// ofTheChoice reports whether a selector is of the RelayPools that the reader has
// chosen, or of what has no RelayPool.
func ofTheChoice(u *query.Use) bool {
	var names []string
	for _, m := range u.Matchers {
		names = append(names, m.Name)
	}
	switch u.Metric.Source {
	case query.KubeState:
		return slices.Contains(names, "namespace") && (slices.Contains(names, "deployment") || slices.Contains(names, "horizontalpodautoscaler"))
	case query.Operator:
		if !slices.Contains(u.Metric.Labels, "pool") {
			return true // of the operator's process
		}
	}
	return slices.Contains(names, "namespace") && slices.Contains(names, "pool")
}

// A figure of the fleet is the same on every pod: added up, it is wrong by their number.
func TestFiguresOfTheFleetAreNotAddedUp(t *testing.T) {
	t.Parallel()
	global := []contract.Metric{
		contract.MetricBacklog, contract.MetricBacklogAge, contract.MetricHeld, contract.MetricOpen, contract.MetricSpent, contract.MetricSpentToday,
		contract.MetricReturned, contract.MetricReceived, contract.MetricCap, contract.MetricCapLeft, contract.MetricSwaps, contract.MetricSwapAge,
		contract.MetricSwapsOverdue, contract.MetricLedgerUnknown, contract.MetricLedgerGaps, contract.MetricLedgerDifference, contract.MetricTreeLeaves,
		contract.MetricPayerBalance, contract.MetricPayerMinimum, contract.MetricPayerUsable, contract.MetricRPCUp,
	}
	summed := regexp.MustCompile(`(sum|avg|count) by \([^)]*\) \((?:rate\()?(relaypool_\w+)`)
	panels(func(b *grafana.Board, p *grafana.Panel) {
		for _, q := range p.Queries {
			for _, m := range summed.FindAllStringSubmatch(q.Expr, -1) {
				if slices.ContainsFunc(global, func(g contract.Metric) bool { return g.Name == m[2] }) {
					t.Errorf("%s, %s: %s of %s, which every pod tells: %s", b.Title, p.Title, m[1], m[2], q.Expr)
				}
			}
		}
	})
}

func TestEveryMetricIsOnADashboard(t *testing.T) {
	t.Parallel()
	var shown strings.Builder
	panels(func(_ *grafana.Board, p *grafana.Panel) {
		for _, q := range p.Queries {
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

// What a panel tells its reader to look up is there.
func TestPanelsLeadToAlertsThatThereAre(t *testing.T) {
	t.Parallel()
	fleet, own, err := alerts.Every(root)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"RelayPools": true}
	for _, r := range append(fleet, own...) {
		names[r.Alert] = true
	}
	panels(func(b *grafana.Board, p *grafana.Panel) {
		for _, name := range alertName.FindAllString(p.Description(), -1) {
			if !names[name] {
				t.Errorf("%s, %s speaks of the alert %s, and there is none", b.Title, p.Title, name)
			}
		}
	})
}

func TestTheDashboardsAreCurrent(t *testing.T) {
	t.Parallel()
	var want []string
	for _, b := range boards.All() {
		want = append(want, boards.File(b))
		made, err := b.JSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, boards.Folder, boards.File(b)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(made), string(got)); diff != "" {
			t.Errorf("%s is not current, run go generate in hack/monitoring (-want +got):\n%s", boards.File(b), diff)
		}
	}
	files, err := os.ReadDir(filepath.Join(root, boards.Folder))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of %s (-want +got):\n%s", boards.Folder, diff)
	}
}

// Grafana draws panels on top of each other without a word when they overlap.
func TestPanelsHaveRoomAndNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, b := range boards.All() {
		content, err := b.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			Panels []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
			}
		}
		if err := json.Unmarshal(content, &read); err != nil {
			t.Fatal(err)
		}
		ids, taken := map[int]string{}, map[[2]int]string{}
		for _, p := range read.Panels {
			if other, ok := ids[p.ID]; ok {
				t.Errorf("%s: %s and %s have the number %d", b.Title, other, p.Title, p.ID)
			}
			ids[p.ID] = p.Title
			if p.GridPos.X+p.GridPos.W > grafana.Columns || p.GridPos.W < 1 || p.GridPos.H < 1 {
				t.Errorf("%s: %s is at %+v", b.Title, p.Title, p.GridPos)
			}
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if other, ok := taken[at]; ok {
						t.Fatalf("%s: %s lies over %s", b.Title, p.Title, other)
					}
					taken[at] = p.Title
				}
			}
		}
	}
}
