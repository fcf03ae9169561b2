package dashboard_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/monitoring/dashboard"
)

func panel(title, kind, expr string) dashboard.Panel {
	p := dashboard.Panel{Title: title, Type: kind, Description: "a < b\n\n**Good:** c", Targets: []dashboard.Target{{Expr: expr, LegendFormat: "{{pool}} {{pod}} {{payer}}"}}}
	p.FieldConfig.Defaults.Unit = "s"
	p.GridPos.W, p.GridPos.H = 8, 8
	return p
}

func TestPictureShowsSeriesAndGaps(t *testing.T) {
	t.Parallel()
	series := func(pod string, values ...float64) dashboard.Series {
		return dashboard.Series{Labels: map[string]string{"pool": "s", "pod": pod, "payer": "abcdefghijkl"}, Values: values}
	}
	gap, list := math.NaN(), panel("List", "table", "b")
	list.Targets[0].LegendFormat = ""
	areas := panel("Areas", "timeseries", "a")
	areas.FieldConfig.Defaults.Custom.Stacking.Mode = "normal"
	d := dashboard.Dashboard{Title: "T & Co", Panels: []dashboard.Panel{
		panel("Row", "row", ""), panel("Curves", "timeseries", "a"), areas, panel("Number", "stat", "b"), list, panel("Empty", "timeseries", "none"), panel("Gap", "timeseries", "c"),
	}}
	svg := string(d.Picture(&dashboard.Run{
		Seconds: []float64{0, 1, 2, 3, 4, 5}, Missing: func(string) string { return "no data" },
		Found: map[string][]dashboard.Series{
			"a": {series("one", 0.1, 0.5, 0.2, gap, 3, 2), series("two", 3, 2, 1, 1, 1, gap)}, "b": {series("one", 0, 0, 0, 0, 0.25, 0.25)},
			"c": {series("one", 1, 2, gap, gap, 5, 6)},
		},
		Events: []dashboard.Event{{Seconds: 2, What: "it rains"}},
	}))
	for _, want := range []string{"T &amp; Co", "a &lt; b", "Curves", "Areas", "Number", "Empty", "no data", ">250 ms<", ">one abcd…jkl<", ">abcdefghijkl   one<", "a  2 s: it rains"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error("the picture contains NaN or Inf")
	}
	_, last, _ := strings.Cut(svg, ">Gap<")
	if got := strings.Count(last, "<polyline"); got != 2 {
		t.Errorf("a curve with a gap is drawn in %d segments, want 2", got)
	}
}
