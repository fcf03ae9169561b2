package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// The picture's measures, in pixels.
const (
	columns      = 2
	panelWidth   = 620.0
	panelGap     = 26.0
	labelWidth   = 236.0
	valueWidth   = 128.0
	titleHeight  = 30.0
	rowHeight    = 24.0
	barHeight    = 13.0
	margin       = 28.0
	headingLine  = 16.0
	whisker      = 4.0
	headingStart = 34.0
)

// Colours that differ in lightness too, for those who do not see all hues.
const (
	ink   = "#1f2933"
	faint = "#d9dfe5"
	less  = "#b7791f"
	more  = "#2563a8"
	aimed = "#c8352b"
)

type canvas struct{ bytes.Buffer }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y float64, anchor, content string) {
	c.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`, x, y, anchor, ink, escape(content))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}

// SVG draws a panel for each group: a bar for each set-up's median, a line from
// the lowest to the highest round, and the aim.
func (r *Report) SVG() []byte {
	c := &canvas{}
	top := headingStart + headingLine*float64(len(r.Heading)) + 12
	heights := [columns]float64{}
	type placed struct {
		g    *Group
		x, y float64
	}
	var panels []placed
	for _, g := range r.Groups {
		column := 0
		if heights[1] < heights[0] {
			column = 1
		}
		panels = append(panels, placed{g, margin + float64(column)*(panelWidth+panelGap), top + heights[column]})
		heights[column] += titleHeight + rowHeight*float64(len(g.Rows)) + panelGap
	}
	width := 2*margin + columns*panelWidth + panelGap
	height := top + max(heights[0], heights[1]) + margin
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="Helvetica, Arial, sans-serif" font-size="11">`, width, height)
	c.add(`<rect width="%.0f" height="%.0f" fill="white"/>`, width, height)
	c.add(`<text x="%.1f" y="26" font-size="17" font-weight="bold" fill="%s">The relay's latency and throughput</text>`, margin, ink)
	for i, line := range r.Heading {
		c.text(margin, headingStart+headingLine*float64(i+1)-4, "start", line)
	}
	for _, p := range panels {
		c.panel(p.g, p.x, p.y)
	}
	c.text(margin, height-12, "start", "Bars are medians of the rounds, lines reach from the lowest round to the highest; blue: more is better, brown: less is; red: the aim.")
	c.add("</svg>")
	return c.Bytes()
}

func (c *canvas) panel(g *Group, x, y float64) {
	c.add(`<text x="%.1f" y="%.1f" font-size="12" font-weight="bold" fill="%s">%s</text>`, x, y+14, ink, escape(g.heading()))
	most := g.Aim
	for _, row := range g.Rows {
		most = max(most, slices.Max(row.Values))
	}
	if most <= 0 {
		most = 1
	}
	left, room := x+labelWidth, panelWidth-labelWidth-valueWidth
	at := func(v float64) float64 { return left + room*v/most }
	colour := more
	if g.Better == Less {
		colour = less
	}
	base := g.Rows[0].Median()
	bottom := y + titleHeight + rowHeight*float64(len(g.Rows)) - 6
	c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, left, y+titleHeight-6, left, bottom, faint)
	for i, row := range g.Rows {
		line := y + titleHeight + rowHeight*float64(i)
		middle, median := line+barHeight/2, row.Median()
		c.text(left-8, line+barHeight-2, "end", row.Label)
		c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, left, line, at(median)-left, barHeight, colour)
		low, high := at(slices.Min(row.Values)), at(slices.Max(row.Values))
		c.add(`<path d="M%.1f %.1fH%.1fM%.1f %.1fv%.1fM%.1f %.1fv%.1f" stroke="%s" fill="none"/>`,
			low, middle, high, low, middle-whisker, 2*whisker, high, middle-whisker, 2*whisker, ink)
		c.text(x+panelWidth, line+barHeight-2, "end", fmt.Sprintf("%s  × %s", g.format(median), ratio(median, base)))
	}
	if g.Aim > 0 {
		c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5"/>`, at(g.Aim), y+titleHeight-6, at(g.Aim), bottom, aimed)
	}
}
