package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/hack/plot"
)

// Run is a fleet's values over some minutes.
type Run struct {
	// Description describes the run.
	Description string
	// Seconds are the times of all values, from the run's beginning.
	Seconds []float64
	// Found are the series of each query. Missing returns why a query has none.
	Found   map[string][]Series
	Missing func(expr string) string
	Events  []Event
}

// Series has a value for each time, NaN where there is none.
type Series struct {
	Labels map[string]string
	Values []float64
}

// Event is marked in every panel by a letter, and explained below the panels.
type Event struct {
	Seconds float64
	What    string
}

// The picture's measures, in pixels.
const (
	width        = 1280.0
	margin       = 16.0
	unitX        = (width - 2*margin) / Columns
	unitY        = 22.0
	top          = 74.0
	gap          = 8.0
	eventColumns = 3
	eventLine    = 15.0
	minLegends   = 6
)

type picture struct {
	*plot.Canvas
	*Run
}

// Picture draws the dashboard as Grafana lays it out.
func (d *Dashboard) Picture(r *Run) []byte {
	bottom := 0
	for i := range d.Panels {
		bottom = max(bottom, d.Panels[i].GridPos.Y+d.Panels[i].GridPos.H)
	}
	end := top + float64(bottom)*unitY + 20
	height := end + eventLine*math.Ceil(float64(len(r.Events))/eventColumns)
	c := picture{plot.New(width, height, "#f3f5f7"), r}
	c.Text(margin, 28, d.Title, plot.Bold+` font-size="18"`)
	c.Text(margin, 47, d.Description, plot.Soft)
	c.Text(margin, 63, r.Description, plot.Soft)
	for i := range d.Panels {
		p := &d.Panels[i]
		at := p.GridPos
		c.panel(p, plot.Box{X: margin + float64(at.X)*unitX, Y: top + float64(at.Y)*unitY, W: float64(at.W)*unitX - gap, H: float64(at.H)*unitY - gap})
	}
	for i, e := range r.Events {
		x := margin + float64(i%eventColumns)*(width-2*margin)/eventColumns
		c.Text(x, end+float64(i/eventColumns)*eventLine, fmt.Sprintf("%s  %.0f s: %s", letter(i), e.Seconds, e.What), "")
	}
	return c.SVG()
}

func (c *picture) panel(p *Panel, b plot.Box) {
	if p.Type == "row" {
		c.Text(b.X, b.Y+15, p.Title, plot.Bold+` font-size="13"`)
		return
	}
	summary, _, _ := strings.Cut(p.Description, "\n")
	c.Add("<g><title>%s</title>", plot.Escape(summary))
	c.Rect(b, plot.Fill("white")+` rx="3" `+plot.Grid)
	c.Text(b.X+8, b.Y+15, p.Title, plot.Bold)
	inner := plot.Box{X: b.X + 8, Y: b.Y + 20, W: b.W - 16, H: b.H - 26}
	curves, missing := c.curves(p)
	switch {
	case len(curves) == 0:
		c.Text(b.X+b.W/2, b.Y+b.H/2+4, missing, plot.Middle+" "+plot.Soft)
	case p.Type == "stat":
		c.numbers(p, curves, inner)
	case p.Type == "table":
		for i, k := range curves {
			c.Text(inner.X, inner.Y+14*float64(i+1), k.Name, "")
		}
	default:
		c.chart(p, curves, inner)
	}
	c.Add("</g>")
}

// curves gathers a panel's series; missing is the reason if there are none. A table has only
// the series with a value at the end.
func (c *picture) curves(p *Panel) (all []plot.Curve, missing string) {
	for _, t := range p.Targets {
		missing = c.Missing(t.Expr)
		for _, s := range c.Found[t.Expr] {
			if p.Type != "table" || !math.IsNaN(s.Values[len(s.Values)-1]) {
				all = append(all, plot.Curve{Name: seriesName(t.LegendFormat, s.Labels), Values: s.Values})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b plot.Curve) int { return strings.Compare(a.Name, b.Name) })
	colours := []string{plot.Blue, "#e08a1e", plot.Green, "#8b1a6b", "#5fb3d9", plot.Red, "#7a5c13", "#8f8fd6", "#3d3d3d", "#9bbf3b"}
	for i := range all {
		all[i].Colour = colours[i%len(colours)]
	}
	return all, missing
}

// axes makes a chart with the run's time axis.
func (c *picture) axes(b plot.Box, curves ...plot.Curve) plot.Chart {
	return plot.Chart{Box: b, Times: c.Seconds, Total: c.Seconds[len(c.Seconds)-1], Curves: curves}
}

// numbers writes the newest values, with their earlier values as a curve behind.
func (c *picture) numbers(p *Panel, curves []plot.Curve, b plot.Box) {
	w := b.W / float64(len(curves))
	for i, k := range curves {
		known := slices.DeleteFunc(slices.Clone(k.Values), math.IsNaN)
		last, colour := known[len(known)-1], plot.Green
		for _, s := range p.FieldConfig.Defaults.Thresholds.Steps {
			if s.Value == nil || last >= *s.Value {
				colour = colourOf(s.Color)
			}
		}
		factor, suffix := unit(p.FieldConfig.Defaults.Unit, math.Abs(last))
		x := b.X + float64(i)*w
		past := c.axes(plot.Box{X: x, Y: b.Y + b.H*0.45, W: w - 4, H: b.H * 0.5}, plot.Curve{Colour: "#d9dfe5", Values: k.Values})
		past.Bare = true
		past.Draw(c.Canvas)
		c.Text(x+w/2, b.Y+b.H*0.5+6, plot.Number(last*factor)+suffix, plot.Middle+" "+plot.Bold+" "+plot.Fill(colour)+` font-size="21"`)
	}
}

func colourOf(threshold string) string {
	return map[string]string{"green": plot.Green, "orange": plot.Orange, "red": plot.Red}[threshold]
}

// chart draws curves, or areas on top of each other, with axes, events and legend.
func (c *picture) chart(p *Panel, curves []plot.Curve, b plot.Box) {
	field, most := &p.FieldConfig.Defaults, 0.0
	for i := range curves {
		most = max(most, curves[i].Most())
	}
	factor, suffix := unit(field.Unit, most)
	columns := max(1, int(b.W/150))
	shown := min(len(curves), max(minLegends, 2*columns))
	legends := plot.LegendLine * float64((shown+columns-1)/columns)
	h := c.axes(plot.Box{X: b.X + 50, Y: b.Y + 10, W: b.W - 50, H: b.H - 26 - legends})
	h.Stacked, h.Log = field.Custom.Stacking.Mode == "normal", field.Custom.ScaleDistribution.Type == "log"
	if h.Suffix = suffix; len(suffix) > len(" MiB") {
		h.Suffix = ""
		c.Text(b.X+b.W, b.Y-5, suffix, plot.End+" "+plot.Soft+" "+plot.Small)
	}
	for _, k := range curves {
		k.Values = slices.Clone(k.Values)
		for i := range k.Values {
			k.Values[i] *= factor
		}
		h.Curves = append(h.Curves, k)
	}
	steps := field.Thresholds.Steps
	for i := 1; i < len(steps); i++ {
		worse := i // the worse step is above the limit, or below it if the first step is red
		if steps[0].Color == "red" {
			worse = i - 1
		}
		h.Limits = append(h.Limits, plot.Limit{Value: *steps[i].Value * factor, Colour: colourOf(steps[worse].Color)})
	}
	c.TimeAxis(h.Box, h.Total, 6)
	for i, e := range c.Events {
		x := h.At(e.Seconds)
		c.Line(x, h.Y, x, h.Y+h.H, `stroke="#c3ccd4" stroke-dasharray="2 3"`)
		c.Text(x, h.Y-2, letter(i), plot.Middle+" "+plot.Soft+` font-size="8"`)
	}
	h.Draw(c.Canvas)
	slices.SortStableFunc(h.Curves, func(x, y plot.Curve) int { return cmp.Compare(y.Most(), x.Most()) })
	if shown < len(curves) {
		h.Curves[shown-1].Name += fmt.Sprintf(", and %d more", len(curves)-shown)
	}
	c.Legend(plot.Box{X: b.X, Y: h.Y + h.H + 16, W: b.W}, columns, h.Curves[:shown])
}

func letter(i int) string { return string(rune('a' + i%26)) }

// unit returns the factor for values of a Grafana unit, and the suffix after them.
func unit(name string, most float64) (factor float64, suffix string) {
	switch {
	case strings.HasPrefix(name, "suffix:"):
		return 1, strings.TrimPrefix(name, "suffix:")
	case name == "percentunit":
		return 100, " %"
	case name == "bytes":
		return 1. / (1 << 20), " MiB"
	case name == "ops":
		return 1, "/s"
	case name == "s" && most > 0 && most < 1:
		return 1000, " ms"
	case name == "s" && most >= 600:
		return 1. / 60, " min"
	case name == "h" && most > 48:
		return 1. / 24, " days"
	case name == "s", name == "h":
		return 1, " " + name
	}
	return 1, ""
}

var inLegend = regexp.MustCompile(`\{\{\w+\}\}`)

// seriesName fills in a legend, without the pool, which is the same for all series, and with a
// shortened address of a payer. Without a legend, as in a table, it returns the labels' values.
func seriesName(legend string, labels map[string]string) string {
	if legend == "" {
		var values []string
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			if !slices.Contains([]string{"namespace", "pool", "__name__"}, key) {
				values = append(values, labels[key])
			}
		}
		return strings.Join(values, "   ")
	}
	if legend == "{{pool}}" {
		return labels["pool"]
	}
	return strings.TrimSpace(inLegend.ReplaceAllStringFunc(strings.TrimPrefix(legend, "{{pool}}"), func(key string) string {
		v := labels[strings.Trim(key, "{}")]
		if key == "{{payer}}" && len(v) > 8 {
			v = v[:4] + "…" + v[len(v)-3:]
		}
		return v
	}))
}
