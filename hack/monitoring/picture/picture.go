// Package picture draws a dashboard's panels from a real run, as Grafana lays them
// out, on a ground of their own for light and dark pages.
package picture

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/hack/monitoring/prom"
)

// Board is a dashboard with what its queries found.
type Board struct {
	*grafana.Board
	// Ran says what was run.
	Ran      string
	From, To time.Time
	// Found gives each query's series, Missing why one without any has none.
	Found   map[string][]prom.Series
	Missing func(expr string) string
	Events  []Event
}

// Event is marked in every panel by a letter, and explained below.
type Event struct {
	At   time.Time
	What string
}

// The picture's measures, in pixels.
const (
	width   = 1280.0
	margin  = 16.0
	unitX   = (width - 2*margin) / grafana.Columns
	unitY   = 21.0
	top     = 78.0
	heading = 30.0
	gap     = 8.0

	titleHeight  = 20.0
	axisWidth    = 50.0
	axisHeight   = 14.0
	legendHeight = 13.0
	mostLegends  = 6
	letterWidth  = 5.4
	eventLine    = 15.0
)

// Colours that differ in lightness too, for those who do not see all hues.
const (
	ink   = "#1f2933"
	soft  = "#66737f"
	faint = "#e3e8ec"
	page  = "#f3f5f7"
	warn  = "#d98a00"
	alarm = "#c8352b"
	good  = "#2f8f4e"
)

func palette() []string {
	return []string{"#2563a8", "#e08a1e", "#2f8f4e", "#8b1a6b", "#5fb3d9", "#c8352b", "#7a5c13", "#8f8fd6", "#3d3d3d", "#9bbf3b"}
}

type canvas struct {
	bytes.Buffer
	b *Board
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y float64, anchor, colour, size, content string) {
	c.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" font-size="%s">%s</text>`, x, y, anchor, colour, size, escape(content))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}

// SVG draws the board.
func SVG(b *Board) []byte {
	c := &canvas{b: b}
	height := top
	for i := range b.Rows {
		_, units := b.Rows[i].Layout()
		height += heading + float64(units)*unitY
	}
	lines := math.Ceil(float64(len(b.Events)) / eventColumns)
	keyTop := height + 14
	height += 26 + lines*eventLine
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="Helvetica, Arial, sans-serif" font-size="11">`, width, height)
	c.add(`<rect width="%.0f" height="%.0f" fill="%s"/>`, width, height, page)
	c.add(`<text x="%.1f" y="28" font-size="18" font-weight="bold" fill="%s">%s</text>`, margin, ink, escape(b.Title))
	c.text(margin, 47, "start", soft, "12", b.Description)
	c.text(margin, 64, "start", soft, "12", b.Ran)
	y := top
	for i := range b.Rows {
		r := &b.Rows[i]
		c.add(`<text x="%.1f" y="%.1f" font-size="13" font-weight="bold" fill="%s">%s</text>`, margin, y+19, ink, escape(r.Title))
		y += heading
		places, units := r.Layout()
		for j, at := range places {
			c.panel(&r.Panels[j], box{margin + float64(at.X)*unitX, y + float64(at.Y)*unitY, float64(at.W)*unitX - gap, float64(at.H)*unitY - gap})
		}
		y += float64(units) * unitY
	}
	c.events(keyTop)
	c.add("</svg>")
	return c.Bytes()
}

const eventColumns = 4

func letter(i int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return letters[i%len(letters):][:1]
}

// events explains the letters.
func (c *canvas) events(y float64) {
	for i, e := range c.b.Events {
		x := margin + float64(i%eventColumns)*(width-2*margin)/eventColumns
		at := e.At.Sub(c.b.From).Seconds()
		c.text(x, y+float64(i/eventColumns)*eventLine+10, "start", ink, "11", fmt.Sprintf("%s  %.0f s: %s", letter(i), at, e.What))
	}
}

type box struct{ x, y, w, h float64 }

func (c *canvas) panel(p *grafana.Panel, b box) {
	c.add(`<g><title>%s</title>`, escape(p.Shows))
	c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3" fill="white" stroke="%s"/>`, b.x, b.y, b.w, b.h, faint)
	c.add(`<text x="%.1f" y="%.1f" font-size="11.5" font-weight="bold" fill="%s">%s</text>`, b.x+8, b.y+15, ink, escape(p.Title))
	if unit, long := longUnit(p.Unit); long && p.Kind != grafana.Numbers {
		c.text(b.x+b.w-8, b.y+15, "end", soft, "10", unit)
	}
	inner := box{b.x + 8, b.y + titleHeight, b.w - 16, b.h - titleHeight - 6}
	curves, missing := c.curves(p)
	switch {
	case len(curves) == 0:
		c.text(b.x+b.w/2, b.y+b.h/2+4, "middle", soft, "11", missing)
	case p.Kind == grafana.Numbers:
		c.numbers(p, curves, inner)
	case p.Kind == grafana.Table:
		c.table(curves, inner)
	default:
		c.plot(p, curves, inner)
	}
	c.add("</g>")
}

// lastMoment is how long before its end a run's newest values can be of.
const lastMoment = 5 * time.Second

// curve is one series with its name and colour.
type curve struct {
	name, colour string
	labels       map[string]string
	points       []prom.Point
	most         float64
}

func (k *curve) last() float64 { return k.points[len(k.points)-1].Value }

// curves gathers a panel's series; missing says why there is none.
func (c *canvas) curves(p *grafana.Panel) (all []curve, missing string) {
	for _, q := range p.Queries {
		series := c.b.Found[q.Expr]
		if len(series) == 0 {
			missing = c.b.Missing(q.Expr)
		}
		for _, s := range series {
			if p.Kind == grafana.Table && c.b.To.Sub(s.Points[len(s.Points)-1].At) > lastMoment {
				continue // it is no more
			}
			k := curve{name: name(q.Legend, s.Labels), labels: s.Labels, points: s.Points}
			for _, point := range s.Points {
				k.most = max(k.most, math.Abs(point.Value))
			}
			all = append(all, k)
		}
	}
	slices.SortStableFunc(all, func(a, b curve) int { return strings.Compare(a.name, b.name) })
	colours := palette()
	for i := range all {
		all[i].colour = colours[i%len(colours)]
	}
	return all, missing
}

// numbers writes the newest values, with their past behind.
func (c *canvas) numbers(p *grafana.Panel, curves []curve, b box) {
	w := b.w / float64(len(curves))
	for i := range curves {
		k := &curves[i]
		at := box{b.x + float64(i)*w, b.y + b.h*0.45, w - 4, b.h * 0.5}
		low, high := extent(curves[i:i+1], false)
		c.line(k, at, low, high, faint, 1.5)
		c.add(`<text x="%.1f" y="%.1f" text-anchor="middle" font-size="21" font-weight="bold" fill="%s">%s</text>`,
			at.x+w/2, b.y+b.h*0.5+6, judge(p, k.last()), escape(value(k.last(), p.Unit)))
	}
}

// judge is the colour of a value by the panel's limits.
func judge(p *grafana.Panel, v float64) string {
	switch {
	case p.Warn == 0 && p.Alarm == 0:
		return good
	case p.Below && v < p.Alarm, !p.Below && v >= p.Alarm:
		return alarm
	case p.Below && v < p.Warn, !p.Below && v >= p.Warn:
		return warn
	}
	return good
}

func (c *canvas) table(curves []curve, b box) {
	for i, k := range curves {
		y := b.y + 14 + float64(i)*14
		if y > b.y+b.h {
			break
		}
		c.text(b.x, y, "start", ink, "11", row(k.labels))
	}
}
