package timeline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/plot"
)

// The picture's dimensions, in pixels.
const (
	width        = 1280.0
	left, right  = 92.0, 30.0
	top          = 74.0
	panelGap     = 44.0
	rowHeight    = 17.0
	laneGap      = 5.0
	minBandWidth = 3.0
	letterWidth  = 5.3 // the width of a letter in a band's label
	shade        = "#f6e3c5"
)

type drawing struct {
	*plot.Canvas
	plot.Chart
}

// SVG draws the timeline: rates, backlog, swaps, and a lane for each part that failed, over
// one time axis.
func SVG(t *Timeline) []byte {
	lanes, panels := layOut(t), panels(t)
	lanesTop := top
	for _, p := range panels {
		lanesTop += p.height + panelGap
	}
	bottom := lanesTop
	for _, l := range lanes {
		bottom += l.height()
	}
	area := plot.Box{X: left, Y: top, W: width - left - right, H: bottom + 12 - top}
	c := drawing{plot.New(width, bottom+34, "white"), plot.Chart{Box: area, Total: total(t).Seconds()}}
	for _, s := range t.Samples {
		c.Times = append(c.Times, s.At.Seconds())
	}
	c.Text(left, 26, t.Title, plot.Bold+` font-size="17"`)
	c.Text(left, 44, t.Subtitle, `font-size="12"`)
	c.outages(t, lanesTop-panelGap)
	c.TimeAxis(area, c.Total, 12)
	y := top
	for _, p := range panels {
		chart := plot.Chart{Box: plot.Box{X: left, Y: y, W: area.W, H: p.height}, Times: c.Times, Total: c.Total, Curves: p.curves}
		chart.Draw(c.Canvas)
		c.Legend(plot.Box{X: left, Y: y - 17, W: area.W}, 5, p.curves)
		c.Add(`<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle">%s</text>`, left-52, y+p.height/2, p.unit)
		y += p.height + panelGap
	}
	for _, l := range lanes {
		c.lane(l, y)
		y += l.height()
	}
	end := c.At(t.Load.Seconds())
	c.Line(end, top, end, bottom+12, plot.Dashed(plot.Ink))
	c.Text(end+4, top+11, "load and faults end", "")
	return c.SVG()
}

// total is the time that the picture covers: whole seconds, at least one.
func total(t *Timeline) time.Duration {
	last := max(t.Load, time.Second)
	for _, s := range t.Samples {
		last = max(last, s.At)
	}
	for _, b := range t.Bands {
		last = max(last, b.To)
	}
	return (last + time.Second - 1).Truncate(time.Second)
}

// outages shades the times in which the database did not answer, because the curves have
// gaps there.
func (c *drawing) outages(t *Timeline, bottom float64) {
	start := -1
	for i := range t.Samples {
		switch known := t.Samples[i].Known; {
		case !known && start < 0:
			start = max(i-1, 0)
		case start >= 0 && (known || i == len(t.Samples)-1):
			from := c.At(c.Times[start])
			c.Rect(plot.Box{X: from, Y: top, W: c.At(c.Times[i]) - from, H: bottom - top}, plot.Fill(shade))
			start = -1
		}
	}
	c.Rect(plot.Box{X: width - right - 190, Y: top - 14, W: 18, H: 9}, plot.Fill(shade))
	c.Text(width-right-167, top-6, "the database does not answer", "")
}

// panel is a group of curves with a vertical axis of their own.
type panel struct {
	unit   string
	height float64
	curves []plot.Curve
}

// panels are listed from top to bottom. The number of swaps between their legs must fall to
// zero, however many are executed or refunded.
func panels(t *Timeline) []panel {
	curve := func(name, colour string, value func(i int) float64) plot.Curve {
		k := plot.Curve{Name: name, Colour: colour}
		for i := range t.Samples {
			k.Values = append(k.Values, value(i))
		}
		return k
	}
	count := func(name, colour string, of func(Sample) int) plot.Curve {
		return curve(name, colour, func(i int) float64 {
			if !t.Samples[i].Known {
				return math.NaN()
			}
			return float64(of(t.Samples[i]))
		})
	}
	rate := func(name, colour string, of func(Sample) int, known func(Sample) bool) plot.Curve {
		return curve(name, colour, func(i int) float64 { return rate(t.Samples[:i+1], of, known) })
	}
	known, always := func(s Sample) bool { return s.Known }, func(Sample) bool { return true }
	return []panel{
		{"per second", 220, []plot.Curve{
			rate("spends started by clients", plot.Blue, func(s Sample) int { return s.Started }, always),
			rate("submissions completed", plot.Green, func(s Sample) int { return s.Completed }, known),
			rate("submissions failed", plot.Red, func(s Sample) int { return s.Failed }, known),
		}},
		{"submissions", 140, []plot.Curve{count("backlog: accepted, without an outcome", plot.Brown, Sample.Backlog)}},
		{"swaps", 120, []plot.Curve{
			count("between their legs", plot.Brown, func(s Sample) int { return s.Between }),
			count("executed, in all", plot.Green, func(s Sample) int { return s.Executed }),
			count("refunded, in all", plot.Blue, func(s Sample) int { return s.Refunded }),
		}},
	}
}

// rateOver is the time over which a rate is computed.
const rateOver = 2 * time.Second

// rate returns how fast a count grew over the two seconds before the last sample.
func rate(samples []Sample, count func(Sample) int, known func(Sample) bool) float64 {
	last := samples[len(samples)-1]
	for _, s := range samples {
		if past := last.At - s.At; past > 0 && past <= rateOver && known(s) && known(last) {
			// A fork undoes outcomes; such a fall of the count is drawn as 0.
			return max(0, float64(count(last)-count(s))/past.Seconds())
		}
	}
	return math.NaN()
}

// lane is a row of bands, or several rows where bands overlap.
type lane struct {
	name string
	rows [][]Band
}

func (l *lane) height() float64 { return rowHeight*float64(max(len(l.rows), 1)) + laneGap }

// layOut assigns each band to the first row of its lane that has room.
func layOut(t *Timeline) []lane {
	bands := slices.Clone(t.Bands)
	slices.SortStableFunc(bands, func(a, b Band) int { return int(a.From - b.From) })
	lanes := make([]lane, len(t.Lanes))
	for _, b := range bands {
		i := slices.Index(t.Lanes, b.Lane)
		if i < 0 {
			continue
		}
		rows := &lanes[i].rows
		free := slices.IndexFunc(*rows, func(row []Band) bool { return row[len(row)-1].To <= b.From })
		if free < 0 {
			free = len(*rows)
			*rows = append(*rows, nil)
		}
		(*rows)[free] = append((*rows)[free], b)
	}
	for i, name := range t.Lanes {
		lanes[i].name = name
	}
	return lanes
}

func (c *drawing) lane(l lane, y float64) {
	c.Text(left-8, y+12, l.name, plot.End)
	bottom := y + l.height() - laneGap/2
	c.Line(left, bottom, width-right, bottom, plot.Grid)
	for i, row := range l.rows {
		for n, b := range row {
			room := width - right
			if n+1 < len(row) {
				room = c.At(row[n+1].From.Seconds())
			}
			c.band(b, y+rowHeight*float64(i), room)
		}
	}
}

// band draws a band with its label in it or next to it, if there is room.
func (c *drawing) band(b Band, y, room float64) {
	from, to := c.At(b.From.Seconds()), c.At(b.To.Seconds())
	wide, label := max(to-from, minBandWidth), letterWidth*float64(len([]rune(b.Label)))+6
	c.Add(`<g><title>%s</title>`, plot.Escape(fmt.Sprintf("%s: %s, %.1f s to %.1f s", b.Lane, b.Label, b.From.Seconds(), b.To.Seconds())))
	c.Rect(plot.Box{X: from, Y: y + 1, W: wide, H: rowHeight - 3}, plot.Fill(colourOf(b.Label))+` rx="2" fill-opacity="0.75"`)
	switch {
	case label <= wide:
		c.Text(from+4, y+11.5, b.Label, plot.Fill("white")+" "+plot.Small)
	case from+wide+label <= room:
		c.Text(from+wide+3, y+11.5, b.Label, plot.Small)
	}
	c.Add("</g>")
}

// colourOf gives the bands of processes, database and lies colours of their own,
// and all other bands the same colour.
func colourOf(label string) string {
	if strings.HasPrefix(label, "lies: ") {
		return "#6b2c91"
	}
	switch label {
	case "SIGKILL", "crash":
		return "#8b1a2b"
	case "SIGTERM", "stop", "cut":
		return "#9a5b13"
	default:
		return "#41577a"
	}
}
