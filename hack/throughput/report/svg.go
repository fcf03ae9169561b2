package report

import (
	"fmt"
	"slices"

	"github.com/relaypool/relaypool/hack/plot"
)

// The picture's measures, in pixels.
const (
	panelWidth  = 620.0
	panelGap    = 26.0
	labelWidth  = 236.0
	valueWidth  = 128.0
	titleHeight = 30.0
	rowHeight   = 24.0
	barHeight   = 13.0
	margin      = 28.0
	headingLine = 16.0
)

// SVG draws a panel for each group: a bar for each set-up's median, a line from
// the lowest to the highest round, and the aim.
func (r *Report) SVG() []byte {
	top := 46 + headingLine*float64(len(r.Heading))
	bottoms := [2]float64{top, top} // of the columns
	var boxes []plot.Box
	for _, g := range r.Groups {
		column := 0
		if bottoms[1] < bottoms[0] {
			column = 1
		}
		b := plot.Box{X: margin + float64(column)*(panelWidth+panelGap), Y: bottoms[column], W: panelWidth, H: titleHeight + rowHeight*float64(len(g.Rows))}
		boxes = append(boxes, b)
		bottoms[column] += b.H + panelGap
	}
	height := max(bottoms[0], bottoms[1]) + margin
	c := plot.New(2*margin+2*panelWidth+panelGap, height, "white")
	c.Text(margin, 26, "The relay's latency and throughput", plot.Bold+` font-size="17"`)
	for i, line := range r.Heading {
		c.Text(margin, 30+headingLine*float64(i+1), line, "")
	}
	for i, g := range r.Groups {
		g.draw(c, boxes[i])
	}
	c.Text(margin, height-12, "Bars are medians of the rounds, lines reach from the lowest round to the highest; blue: more is better, brown: less is; red: the aim.", "")
	return c.SVG()
}

func (g *Group) draw(c *plot.Canvas, b plot.Box) {
	c.Text(b.X, b.Y+14, g.heading(), plot.Bold+` font-size="12"`)
	most := g.Aim
	for _, row := range g.Rows {
		most = max(most, slices.Max(row.Values))
	}
	if most <= 0 {
		most = 1
	}
	left := b.X + labelWidth
	at := func(v float64) float64 { return left + (b.W-labelWidth-valueWidth)*v/most }
	colour, ink := plot.Blue, `stroke="`+plot.Ink+`"`
	if g.Better == Less {
		colour = plot.Brown
	}
	from, to := b.Y+titleHeight-6, b.Y+b.H-6
	c.Line(left, from, left, to, plot.Grid)
	for i, row := range g.Rows {
		y, median := b.Y+titleHeight+rowHeight*float64(i), row.Median()
		low, high, middle := at(slices.Min(row.Values)), at(slices.Max(row.Values)), y+barHeight/2
		c.Text(left-8, y+barHeight-2, row.Label, plot.End)
		c.Rect(plot.Box{X: left, Y: y, W: at(median) - left, H: barHeight}, plot.Fill(colour))
		c.Line(low, middle, high, middle, ink)
		c.Line(low, middle-4, low, middle+4, ink)
		c.Line(high, middle-4, high, middle+4, ink)
		c.Text(b.X+b.W, y+barHeight-2, fmt.Sprintf("%s  × %s", g.format(median), ratio(median, g.Rows[0].Median())), plot.End)
	}
	if g.Aim > 0 {
		c.Line(at(g.Aim), from, at(g.Aim), to, `stroke="`+plot.Red+`" stroke-width="1.5"`)
	}
}
