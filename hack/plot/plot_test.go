package plot_test

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/plot"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.1 + 0.2: "0.3", 0.00012: "0.00012", 12.34: "12.3", 250: "250", 999.7: "1000", 123456: "123456", -1500: "-1500", 2e7: "2e+07"} {
		if got := plot.Number(v); got != want {
			t.Errorf("%g is written %s, want %s", v, got, want)
		}
	}
}

var (
	polyline = regexp.MustCompile(`<polyline [^>]*points="([^"]*)"`)
	label    = regexp.MustCompile(`<text[^>]*>([^<]*)</text>`)
)

func TestCharts(t *testing.T) {
	t.Parallel()
	gap := math.NaN()
	tests := map[string]struct {
		chart  plot.Chart
		labels string
		// lines are the points of each stretch of each curve.
		lines []string
	}{
		"a curve with a gap is two lines": {
			plot.Chart{Curves: []plot.Curve{{Values: []float64{0, 4, gap, 2, 0}}}}, "0 1 2 3 4",
			[]string{"0.0,100.0 0.0,100.0 25.0,0.0", "75.0,50.0 75.0,50.0 100.0,100.0"},
		},
		"a level part keeps only its ends": {
			plot.Chart{Curves: []plot.Curve{{Values: []float64{4, 4, 4, 4, 0}}}}, "0 1 2 3 4",
			[]string{"0.0,0.0 0.0,0.0 75.0,0.0 100.0,100.0"},
		},
		"areas are stacked, and a curve of zeros has no area": {
			plot.Chart{Stacked: true, Suffix: "/s", Curves: []plot.Curve{{Values: []float64{1, 1, 1, 1, 1}}, {Values: []float64{0, 0, 0, 0, 0}}, {Values: []float64{3, gap, 3, 3, 3}}}}, "0/s 1/s 2/s 3/s 4/s",
			[]string{"0.0,75.0 0.0,75.0 100.0,75.0", "0.0,0.0 0.0,0.0 25.0,75.0 50.0,0.0 100.0,0.0"},
		},
		"powers of ten are evenly spaced": {
			plot.Chart{Log: true, Curves: []plot.Curve{{Values: []float64{1, 10, 100, 0.1, 0}}}}, "0.01 0.1 1 10 100",
			[]string{"0.0,50.0 0.0,50.0 25.0,25.0 50.0,0.0 75.0,75.0 100.0,100.0"},
		},
		"nothing but zeros": {
			plot.Chart{Curves: []plot.Curve{{Values: []float64{0, 0, 0, 0, 0}}}}, "0 0.5 1",
			[]string{"0.0,100.0 0.0,100.0 100.0,100.0"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.chart.Box, tc.chart.Times, tc.chart.Total = plot.Box{W: 100, H: 100}, []float64{0, 1, 2, 3, 4}, 4
			c := plot.New(100, 100, "white")
			tc.chart.Draw(c)
			svg := string(c.SVG())
			var labels, lines []string
			for _, m := range label.FindAllStringSubmatch(svg, -1) {
				labels = append(labels, m[1])
			}
			for _, m := range polyline.FindAllStringSubmatch(svg, -1) {
				lines = append(lines, m[1])
			}
			if got := strings.Join(labels, " "); got != tc.labels {
				t.Errorf("axis labels are %s, want %s", got, tc.labels)
			}
			if !slices.Equal(lines, tc.lines) {
				t.Errorf("lines %q, want %q", lines, tc.lines)
			}
		})
	}
}
