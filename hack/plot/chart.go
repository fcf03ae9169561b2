package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Chart has curves over time, in a box with axes.
type Chart struct {
	Box
	// Times are the times of every curve's values. Both axes begin at 0; the time axis ends
	// at Total.
	Times  []float64
	Total  float64
	Curves []Curve
	// Stacked draws areas on top of each other; Log is a logarithmic vertical axis.
	Stacked, Log bool
	// Bare leaves the axes out.
	Bare bool
	// Suffix follows the numbers of the vertical axis.
	Suffix string
	// Limits are drawn if they are within the axis.
	Limits []Limit
}

// Curve has a value for each time, NaN where there is none.
type Curve struct {
	Name, Colour string
	Values       []float64
}

// Limit is a boundary between good and bad values.
type Limit struct {
	Value  float64
	Colour string
}

// Most is the largest absolute value.
func (k *Curve) Most() (most float64) {
	for _, v := range k.Values {
		if !math.IsNaN(v) {
			most = max(most, math.Abs(v))
		}
	}
	return most
}

// Draw draws the horizontal lines, the limits and the curves.
func (h *Chart) Draw(c *Canvas) {
	heights := h.heights()
	low, high, step := h.scale(heights)
	y := func(v float64) float64 { return h.Y + h.H*(1-(v-low)/(high-low)) }
	for v := low; v <= high+step/2 && !h.Bare; v += step {
		shown := v
		if h.Log {
			shown = math.Pow(10, v)
		}
		c.Line(h.X, y(v), h.X+h.W, y(v), Grid)
		c.Text(h.X-5, y(v)+3.5, Number(shown)+h.Suffix, End+" "+Soft+" "+Small)
	}
	for _, l := range h.Limits {
		if l.Value > low && l.Value <= high && !h.Log {
			c.Line(h.X, y(l.Value), h.X+h.W, y(l.Value), Dashed(l.Colour))
		}
	}
	below := make([]float64, len(h.Times))
	for i := range h.Curves {
		k := &h.Curves[i]
		if h.Stacked && k.Most() == 0 {
			continue // its line would hide the line of the curve below
		}
		line := h.segments(heights[i], y)
		if h.Stacked {
			back := strings.Fields(strings.Join(h.segments(below, y), " "))
			slices.Reverse(back)
			c.Add(`<polygon fill="%s" fill-opacity="0.55" points="%s %s"/>`, k.Colour, strings.Join(line, " "), strings.Join(back, " "))
			below = heights[i]
		}
		for _, segment := range line {
			c.Add(`<polyline fill="none" stroke="%s" stroke-width="1.6" stroke-linecap="round" points="%s"/>`, k.Colour, segment)
		}
	}
}

// heights are the values after stacking or taking logarithms.
func (h *Chart) heights() [][]float64 {
	all, sums := make([][]float64, len(h.Curves)), make([]float64, len(h.Times))
	for i := range h.Curves {
		all[i] = slices.Clone(h.Curves[i].Values)
		for j, v := range all[i] {
			switch {
			case h.Log:
				all[i][j] = math.Log10(max(v, 0.01))
			case h.Stacked && math.IsNaN(v):
				all[i][j] = sums[j]
			case h.Stacked:
				sums[j] += v
				all[i][j] = sums[j]
			}
		}
	}
	return all
}

// scale is the start and the end of the vertical axis, in whole steps.
func (h *Chart) scale(heights [][]float64) (low, high, step float64) {
	for _, values := range heights {
		for _, v := range values {
			if !math.IsNaN(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if low == high {
		high = low + 1
	}
	if step = roundUp((high - low) / 4); h.Log {
		step = math.Ceil((high - low) / 5)
	}
	return step * math.Floor(low/step), step * math.Ceil(high/step), step
}

// At is the position of a time.
func (h *Chart) At(seconds float64) float64 { return h.X + h.W*seconds/h.Total }

// segments are the pieces of a line between gaps, as points. Level parts keep only their
// end points.
func (h *Chart) segments(values []float64, y func(float64) float64) (all []string) {
	inSegment := false
	for i, v := range values {
		if math.IsNaN(v) {
			inSegment = false
			continue
		}
		point := fmt.Sprintf("%.1f,%.1f", h.At(h.Times[i]), y(v))
		switch {
		case !inSegment:
			all = append(all, point+" "+point) // a line even when nothing follows
			inSegment = true
		case i+1 == len(values) || v != values[i-1] || v != values[i+1]:
			all[len(all)-1] += " " + point
		}
	}
	return all
}

// TimeAxis draws about steps vertical lines in a box, with round seconds below them.
func (c *Canvas) TimeAxis(b Box, total float64, steps int) {
	step := roundUp(total / float64(steps))
	for s := 0.0; s <= total; s += step {
		x := b.X + b.W*s/total
		c.Line(x, b.Y, x, b.Y+b.H, Grid)
		c.Text(x, b.Y+b.H+12, Number(s)+" s", Middle+" "+Soft+" "+Small)
	}
}

// LegendLine is the height of a line of a legend, and letter is the width of a letter.
const (
	LegendLine = 13
	letter     = 5.4
)

// Legend names curves in columns, from a box's left top corner on.
func (c *Canvas) Legend(b Box, columns int, curves []Curve) {
	columnWidth := b.W / float64(columns)
	for i, k := range curves {
		x, y := b.X+float64(i%columns)*columnWidth, b.Y+float64(i/columns)*LegendLine
		name := []rune(k.Name)
		if room := max(int((columnWidth-22)/letter), 1); len(name) > room {
			name = append(name[:room-1], '…')
		}
		c.Rect(Box{x, y + 4, 14, 3}, Fill(k.Colour))
		c.Text(x+18, y+9, string(name), Small)
	}
}
