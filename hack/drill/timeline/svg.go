package timeline

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The picture's measures, in pixels.
const (
	width        = 1280.0
	left, right  = 92.0, 30.0
	top          = 74.0
	rateHeight   = 220.0
	countHeight  = 140.0
	swapHeight   = 120.0
	panelGap     = 44.0
	rowHeight    = 17.0
	laneGap      = 5.0
	leastBand    = 3.0
	characterFor = 6.2 // of a legend
	labelFor     = 5.3 // of a band's label, which is smaller
)

// Colours that differ in lightness too, for those who do not see all hues.
const (
	ink       = "#1f2933"
	faint     = "#d9dfe5"
	begunBlue = "#2563a8"
	doneGreen = "#2f8f4e"
	failedRed = "#c8352b"
	backlogOf = "#b7791f"
	shade     = "#f6e3c5"
)

// canvas maps time and values to places and collects elements.
type canvas struct {
	bytes.Buffer
	total time.Duration
}

func (c *canvas) add(format string, args ...any) {
	fmt.Fprintf(c, format+"\n", args...)
}

func (c *canvas) x(at time.Duration) float64 {
	return left + (width-left-right)*float64(at)/float64(c.total)
}

func (c *canvas) text(x, y float64, anchor, content string) {
	c.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`, x, y, anchor, ink, escape(content))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}

// SVG draws the timeline: rates, backlog, swaps, and a lane for each part that broke,
// over one axis of time.
func SVG(t *Timeline) []byte {
	c := &canvas{total: total(t)}
	lanes := layOut(t)
	lanesTop := top + rateHeight + countHeight + swapHeight + 3*panelGap
	height := lanesTop + 34
	for _, l := range lanes {
		height += l.height()
	}
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="Helvetica, Arial, sans-serif" font-size="11">`, width, height)
	c.add(`<rect width="%.0f" height="%.0f" fill="white"/>`, width, height)
	c.add(`<text x="%.1f" y="26" font-size="17" font-weight="bold" fill="%s">%s</text>`, left, ink, escape(t.Title))
	c.add(`<text x="%.1f" y="44" font-size="12" fill="%s">%s</text>`, left, ink, escape(t.Subtitle))
	c.outages(t, top, lanesTop-panelGap)
	c.add(`<rect x="%.1f" y="%.1f" width="18" height="9" fill="%s"/>`, width-right-190, top-14, shade)
	c.text(width-right-167, top-6, "start", "the database does not answer")
	c.timeAxis(top, height-22)
	c.rates(t)
	c.backlog(t)
	c.swaps(t)
	y := lanesTop
	for _, l := range lanes {
		c.lane(l, y)
		y += l.height()
	}
	end := c.x(t.Load)
	c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="5 4"/>`, end, top, end, height-22, ink)
	c.text(end+4, top+11, "start", "load and faults end")
	c.add("</svg>")
	return c.Bytes()
}

// total is the time that the picture spans: whole seconds, at least one.
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

// outages shades the time in which the database did not answer, because the
// curves have gaps there.
func (c *canvas) outages(t *Timeline, from, to float64) {
	begun := -1
	for i := range t.Samples {
		switch known := t.Samples[i].Known; {
		case !known && begun < 0:
			begun = max(i-1, 0)
		case begun >= 0 && (known || i == len(t.Samples)-1):
			a, b := c.x(t.Samples[begun].At), c.x(t.Samples[i].At)
			c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, a, from, b-a, to-from, shade)
			begun = -1
		}
	}
}

func (c *canvas) timeAxis(from, to float64) {
	step := nice(c.total.Seconds() / 12)
	for s := 0.0; s <= c.total.Seconds(); s += step {
		x := c.x(time.Duration(s * float64(time.Second)))
		c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x, from, x, to, faint)
		c.text(min(x, width-right), to+15, "middle", fmt.Sprintf("%g s", s))
	}
}

// nice is the least of 1, 2 and 5 times a power of ten that is not below v.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= v {
			return factor * power
		}
	}
	return 10 * power
}

// point is a value at a time; a gap has none.
type point struct {
	at  time.Duration
	v   float64
	gap bool
}

// rateOver is the time over which a rate is taken.
const rateOver = 2 * time.Second

// rate is how fast a count grew over the last two seconds before each sample.
func rate(samples []Sample, count func(Sample) int, known func(Sample) bool) (out []point) {
	first := 0
	for i, s := range samples {
		for first < i && s.At-samples[first].At > rateOver {
			first++
		}
		for first < i && !known(samples[first]) {
			first++
		}
		past := s.At - samples[first].At
		p := point{at: s.At, gap: !known(s) || past <= 0}
		if !p.gap {
			// A fork takes outcomes back; that is no rate.
			p.v = max(0, float64(count(s)-count(samples[first]))/past.Seconds())
		}
		out = append(out, p)
	}
	return out
}

type curve struct {
	name, colour string
	points       []point
}

func (c *canvas) rates(t *Timeline) {
	known, always := func(s Sample) bool { return s.Known }, func(Sample) bool { return true }
	c.panel(top, rateHeight, "per second", []curve{
		{"spends begun by clients", begunBlue, rate(t.Samples, func(s Sample) int { return s.Begun }, always)},
		{"submissions completed", doneGreen, rate(t.Samples, func(s Sample) int { return s.Completed }, known)},
		{"submissions failed", failedRed, rate(t.Samples, func(s Sample) int { return s.Failed }, known)},
	})
}

func (c *canvas) backlog(t *Timeline) {
	c.panel(top+rateHeight+panelGap, countHeight, "submissions", []curve{
		{"backlog: accepted, without an outcome", backlogOf, counts(t.Samples, Sample.Backlog)},
	})
}

// swaps shows where those are whose first leg is completed: the first curve has
// to come down to nothing, however the others share it.
func (c *canvas) swaps(t *Timeline) {
	c.panel(top+rateHeight+countHeight+2*panelGap, swapHeight, "swaps", []curve{
		{"between their legs", backlogOf, counts(t.Samples, func(s Sample) int { return s.Between })},
		{"executed, in all", doneGreen, counts(t.Samples, func(s Sample) int { return s.Executed })},
		{"refunded, in all", begunBlue, counts(t.Samples, func(s Sample) int { return s.Refunded })},
	})
}

// counts are the values of samples of which the database is known.
func counts(samples []Sample, count func(Sample) int) []point {
	points := make([]point, len(samples))
	for i, s := range samples {
		points[i] = point{at: s.At, v: float64(count(s)), gap: !s.Known}
	}
	return points
}

// panel draws curves over one axis of values.
func (c *canvas) panel(y, height float64, unit string, curves []curve) {
	most := 1.0
	for _, k := range curves {
		for _, p := range k.points {
			most = max(most, p.v)
		}
	}
	step := nice(most / 5)
	most = step * math.Ceil(most/step)
	place := func(v float64) float64 { return y + height*(1-v/most) }
	for v := 0.0; v <= most; v += step {
		c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, left, place(v), width-right, place(v), faint)
		c.text(left-6, place(v)+4, "end", fmt.Sprintf("%g", v))
	}
	c.add(`<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle" fill="%s">%s</text>`, left-52, y+height/2, ink, unit)
	x := left
	for _, k := range curves {
		c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"/>`, x, y-10, x+18, y-10, k.colour)
		c.text(x+23, y-6, "start", k.name)
		x += 23 + characterFor*float64(len(k.name)) + 22
		c.curve(k, place)
	}
}

// curve draws the stretches between gaps.
func (c *canvas) curve(k curve, place func(float64) float64) {
	var stretch []string
	flush := func() {
		if len(stretch) > 1 {
			c.add(`<polyline fill="none" stroke="%s" stroke-width="1.8" points="%s"/>`, k.colour, strings.Join(stretch, " "))
		}
		stretch = nil
	}
	for _, p := range k.points {
		if p.gap {
			flush()
			continue
		}
		stretch = append(stretch, fmt.Sprintf("%.1f,%.1f", c.x(p.at), place(p.v)))
	}
	flush()
}

// lane is a row of bands, or several where bands overlap.
type lane struct {
	name string
	rows [][]Band
}

func (l *lane) height() float64 { return rowHeight*float64(max(len(l.rows), 1)) + laneGap }

// layOut gives each band the first row of its lane in which there is room.
func layOut(t *Timeline) []lane {
	bands := slices.Clone(t.Bands)
	slices.SortStableFunc(bands, func(a, b Band) int { return int(a.From - b.From) })
	lanes := make([]lane, len(t.Lanes))
	for i, name := range t.Lanes {
		lanes[i].name = name
		for _, b := range bands {
			if b.Lane == name {
				lanes[i].put(b)
			}
		}
	}
	return lanes
}

func (l *lane) put(b Band) {
	for i, row := range l.rows {
		if row[len(row)-1].To <= b.From {
			l.rows[i] = append(row, b)
			return
		}
	}
	l.rows = append(l.rows, []Band{b})
}

func (c *canvas) lane(l lane, y float64) {
	c.text(left-8, y+12, "end", l.name)
	c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, left, y+l.height()-laneGap/2, width-right, y+l.height()-laneGap/2, faint)
	for i, row := range l.rows {
		at := y + rowHeight*float64(i)
		for n, b := range row {
			from, to := c.x(b.From), c.x(b.To)
			wide, room := max(to-from, leastBand), width-right
			if n+1 < len(row) {
				room = c.x(row[n+1].From)
			}
			c.add(`<g><title>%s: %s, %.1f s to %.1f s</title>`, escape(b.Lane), escape(b.Label), b.From.Seconds(), b.To.Seconds())
			c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="%s" fill-opacity="0.75"/>`, from, at+1, wide, rowHeight-3, colourOf(b.Label))
			label := labelFor*float64(len([]rune(b.Label))) + 6
			switch {
			case label <= wide:
				c.add(`<text x="%.1f" y="%.1f" fill="white" font-size="10">%s</text>`, from+4, at+11.5, escape(b.Label))
			case from+wide+label <= room: // beside it
				c.add(`<text x="%.1f" y="%.1f" fill="%s" font-size="10">%s</text>`, from+wide+3, at+11.5, ink, escape(b.Label))
			}
			c.add("</g>")
		}
	}
}

// colourOf gives the bands of processes, database and lies colours of their own,
// and all else one.
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
