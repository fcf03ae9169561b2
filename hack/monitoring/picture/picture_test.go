package picture_test

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/hack/monitoring/picture"
	"github.com/relaypool/relaypool/hack/monitoring/prom"
)

func panel(title string, kind grafana.Kind, expr string) grafana.Panel {
	return grafana.Panel{
		Title: title, Shows: "a < b", Good: "g", Bad: "b", Do: "d", Kind: kind, Unit: grafana.Seconds,
		Queries: []grafana.Query{{Expr: expr, Legend: "{{pool}} {{pod}} {{payer}}"}},
	}
}

func TestAPictureShowsWhatWasFound(t *testing.T) {
	t.Parallel()
	from := time.Unix(1000, 0)
	series := func(pod string, values ...float64) prom.Series {
		s := prom.Series{Labels: map[string]string{"pool": "s", "pod": "s-" + pod, "payer": "abcdefghijkl"}}
		for i, v := range values {
			s.Points = append(s.Points, prom.Point{At: from.Add(time.Duration(i) * time.Second), Value: v})
		}
		return s
	}
	gapped := series("c", 1, 2, 3, 4, 5, 6)
	gapped.Points = append(gapped.Points[:2], gapped.Points[4:]...)
	svg := string(picture.SVG(&picture.Board{
		Board: &grafana.Board{Title: "T & Co", Rows: []grafana.Row{{Title: "R", Panels: []grafana.Panel{
			panel("Curves", grafana.Curves, "a"), panel("Areas", grafana.Areas, "a"), panel("Number", grafana.Numbers, "b"),
			panel("List", grafana.Table, "b"), panel("Empty", grafana.Curves, "none"), panel("Gap", grafana.Curves, "c"),
		}}}},
		From: from, To: from.Add(5 * time.Second), Missing: func(string) string { return "why not" },
		Found:  map[string][]prom.Series{"a": {series("one", 0.1, 0.5, 0.2), series("two", 3, 2, 1)}, "b": {series("one", 0, 0.25)}, "c": {gapped}},
		Events: []picture.Event{{At: from.Add(2 * time.Second), What: "it rains"}},
	}))
	for _, want := range []string{"T &amp; Co", "Curves", "Areas", "Number", "Empty", "why not", ">250 ms<", "one abcd…jkl", "a  2 s: it rains"} {
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
	_, last, _ := strings.Cut(svg, ">Gap<")
	if got := strings.Count(last, "<polyline"); got != 2 {
		t.Errorf("a curve with a gap is drawn in %d stretches, want 2", got)
	}
	size := regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)"`).FindStringSubmatch(svg)
	wide, _ := strconv.ParseFloat(size[1], 64)
	high, _ := strconv.ParseFloat(size[2], 64)
	for _, m := range regexp.MustCompile(`([\d.-]+),([\d.-]+)`).FindAllStringSubmatch(strings.Join(regexp.MustCompile(`points="[^"]*"`).FindAllString(svg, -1), " "), -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		y, _ := strconv.ParseFloat(m[2], 64)
		if x < 0 || x > wide || y < 0 || y > high {
			t.Fatalf("a point is at %g, %g, outside of %gx%g", x, y, wide, high)
		}
	}
}
