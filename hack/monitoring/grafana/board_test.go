package grafana_test

import (
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/monitoring/grafana"
)

func board(change func(*grafana.Panel)) *grafana.Board {
	p := grafana.Panel{
		Title: "A", Shows: "a", Good: "b", Bad: "c", Do: "d", Kind: grafana.Curves, Unit: grafana.Count,
		Queries: []grafana.Query{{Expr: "up", Legend: "{{pod}}"}},
	}
	if change != nil {
		change(&p)
	}
	return &grafana.Board{UID: "u", Title: "T", Description: "D", Rows: []grafana.Row{{Title: "R", Panels: []grafana.Panel{p}}}}
}

func TestAPanelThatNobodyCanReadIsNone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*grafana.Panel)
		want   string
	}{
		"a whole panel":                {nil, ""},
		"without what is good":         {func(p *grafana.Panel) { p.Good = "" }, "Shows, Good, Bad and Do are required"},
		"without a unit":               {func(p *grafana.Panel) { p.Unit = "" }, "Title, Kind, Unit and Queries are required"},
		"with an empty query":          {func(p *grafana.Panel) { p.Queries[0].Expr = " " }, "a query is empty"},
		"wider than the page":          {func(p *grafana.Panel) { p.Width = 25 }, "its width is 25, expected at most 24"},
		"with limits that are swapped": {func(p *grafana.Panel) { p.Warn, p.Alarm = 5, 3 }, "Warn 5 and Alarm 3"},
		"with limits from below":       {func(p *grafana.Panel) { p.Below, p.Warn, p.Alarm = true, 5, 3 }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := board(tc.change).JSON()
			if got := err != nil; got != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestRowsBreakIntoLines(t *testing.T) {
	t.Parallel()
	row := grafana.Row{Panels: []grafana.Panel{{Width: 12, Height: 4}, {Width: 12, Height: 6}, {Width: 8}}}
	places, height := row.Layout()
	want := []grafana.Place{{0, 0, 12, 4}, {12, 0, 12, 6}, {0, 6, 8, 8}}
	for i := range want {
		if places[i] != want[i] {
			t.Errorf("panel %d at %+v, want %+v", i, places[i], want[i])
		}
	}
	if height != 14 {
		t.Errorf("the row is %d high, want 14", height)
	}
}
