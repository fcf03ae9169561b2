package picture

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/hack/monitoring/prom"
)

// extent is the least and the greatest value of a plot, from 0 at least.
func extent(curves []curve, stacked bool) (low, high float64) {
	sums := map[int64]float64{}
	for _, k := range curves {
		for _, p := range k.points {
			v := p.Value
			if stacked {
				sums[p.At.UnixMilli()] += v
				v = sums[p.At.UnixMilli()]
			}
			low, high = min(low, v), max(high, v)
		}
	}
	if high == low {
		high = low + 1
	}
	return low, high
}

// plot draws curves, or areas on top of each other, with axes and legend.
func (c *canvas) plot(p *grafana.Panel, curves []curve, b box) {
	columns := max(1, int(b.w/150))
	shown := min(len(curves), max(mostLegends, 2*columns))
	lines := (shown + columns - 1) / columns
	area := box{b.x + axisWidth, b.y + 10, b.w - axisWidth, b.h - 10 - axisHeight - float64(lines)*legendHeight}
	tell := func(v float64) string { return tick(round(v), p.Unit) }
	if p.Log {
		curves, tell = logarithms(curves), func(v float64) string { return tick(math.Pow(10, v), p.Unit) }
	}
	low, high := extent(curves, p.Kind == grafana.Areas)
	step := stepOf(p, low, high)
	low, high = step*math.Floor(low/step), step*math.Ceil(high/step)
	for v := low; v <= high+step/2; v += step {
		y := area.y + area.h*(1-(v-low)/(high-low))
		c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, area.x, y, area.x+area.w, y, faint)
		c.text(area.x-5, y+3.5, "end", soft, "9.5", tell(v))
	}
	c.timeAxis(area)
	if !p.Log {
		c.limits(p, area, low, high)
	}
	if p.Kind == grafana.Areas {
		c.areas(curves, area, low, high)
	} else {
		for i := range curves {
			c.line(&curves[i], area, low, high, curves[i].colour, 1.6)
		}
	}
	c.legend(curves, shown, columns, box{b.x, area.y + area.h + axisHeight, b.w, 0})
}

// stepOf is between two lines of a plot.
func stepOf(p *grafana.Panel, low, high float64) float64 {
	switch {
	case p.Log:
		return math.Ceil((high - low) / 5)
	case p.Unit == grafana.Bytes:
		return nice((high-low)/4/(1<<20)) * (1 << 20)
	}
	return nice((high - low) / 4)
}

// logarithms of what curves tell; a hundredth is the least.
func logarithms(curves []curve) []curve {
	out := slices.Clone(curves)
	for i := range out {
		out[i].points = slices.Clone(out[i].points)
		for j := range out[i].points {
			out[i].points[j].Value = math.Log10(max(out[i].points[j].Value, 0.01))
		}
	}
	return out
}

func (c *canvas) x(at time.Time, area box) float64 {
	return area.x + area.w*float64(at.Sub(c.b.From))/float64(c.b.To.Sub(c.b.From))
}

func (c *canvas) timeAxis(area box) {
	total := c.b.To.Sub(c.b.From).Seconds()
	every := nice(total / 6)
	for s := 0.0; s <= total; s += every {
		x := area.x + area.w*s/total
		c.text(x, area.y+area.h+11, "middle", soft, "9", number(s)+" s")
	}
	for i, e := range c.b.Events {
		x := c.x(e.At, area)
		c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#c3ccd4" stroke-dasharray="2 3"/>`, x, area.y, x, area.y+area.h)
		c.text(x, area.y-2, "middle", soft, "8", letter(i))
	}
}

// limits marks from where on a value is bad, if the plot reaches there.
func (c *canvas) limits(p *grafana.Panel, area box, low, high float64) {
	for limit, colour := range map[float64]string{p.Warn: warn, p.Alarm: alarm} {
		if limit <= low || limit > high || limit == 0 || colour == warn && p.Warn == p.Alarm {
			continue
		}
		y := area.y + area.h*(1-(limit-low)/(high-low))
		c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="5 4"/>`, area.x, y, area.x+area.w, y, colour)
	}
}

// line draws a curve, and nothing across a gap.
func (c *canvas) line(k *curve, area box, low, high float64, colour string, thick float64) {
	var stretch []string
	flush := func() {
		switch len(stretch) {
		case 0:
		case 1:
			x, y, _ := strings.Cut(stretch[0], ",")
			c.add(`<circle cx="%s" cy="%s" r="1.5" fill="%s"/>`, x, y, colour)
		default:
			c.add(`<polyline fill="none" stroke="%s" stroke-width="%g" points="%s"/>`, colour, thick, strings.Join(stretch, " "))
		}
		stretch = nil
	}
	for i, p := range k.points {
		if i > 0 && p.At.Sub(k.points[i-1].At) > 2*c.step(k) {
			flush()
		}
		// Of a level stretch the ends are enough.
		if n := len(stretch); n > 1 && level(k.points, i) {
			stretch = stretch[:n-1]
		}
		stretch = append(stretch, fmt.Sprintf("%.1f,%.1f", c.x(p.At, area), area.y+area.h*(1-(p.Value-low)/(high-low))))
	}
	flush()
}

// level reports whether a point and the two before it have the same value.
func level(points []prom.Point, i int) bool {
	return i > 1 && points[i].Value == points[i-1].Value && points[i-1].Value == points[i-2].Value
}

// step is the least time between two points.
func (c *canvas) step(k *curve) time.Duration {
	least := c.b.To.Sub(c.b.From)
	for i := 1; i < len(k.points); i++ {
		least = min(least, k.points[i].At.Sub(k.points[i-1].At))
	}
	return least
}

// areas stacks curves; one without a value counts as nothing.
func (c *canvas) areas(curves []curve, area box, low, high float64) {
	var times []int64
	for _, k := range curves {
		for _, p := range k.points {
			times = append(times, p.At.UnixMilli())
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	base := make([]float64, len(times))
	place := func(i int, v float64) string {
		return fmt.Sprintf("%.1f,%.1f", c.x(time.UnixMilli(times[i]), area), area.y+area.h*(1-(v-low)/(high-low)))
	}
	for _, k := range curves {
		values := map[int64]float64{}
		for _, p := range k.points {
			values[p.At.UnixMilli()] = p.Value
		}
		var upper, lower []string
		for i, at := range times {
			lower = append(lower, place(i, base[i]))
			base[i] += values[at]
			upper = append(upper, place(i, base[i]))
		}
		if k.most == 0 {
			continue
		}
		slices.Reverse(lower)
		c.add(`<polygon fill="%s" fill-opacity="0.55" points="%s %s"/>`, k.colour, strings.Join(upper, " "), strings.Join(lower, " "))
		c.add(`<polyline fill="none" stroke="%s" stroke-width="1" points="%s"/>`, k.colour, strings.Join(upper, " "))
	}
}

// legend names the greatest curves.
func (c *canvas) legend(curves []curve, shown, columns int, b box) {
	ranked := slices.Clone(curves)
	slices.SortStableFunc(ranked, func(x, y curve) int {
		switch {
		case x.most > y.most:
			return -1
		case x.most < y.most:
			return 1
		}
		return 0
	})
	wide := b.w / float64(columns)
	for i, k := range ranked[:shown] {
		x, y := b.x+float64(i%columns)*wide, b.y+float64(i/columns)*legendHeight+9
		text := k.name
		if i == shown-1 && len(curves) > shown {
			text = fmt.Sprintf("%s, and %d more", text, len(curves)-shown)
		}
		if room := int((wide - 16) / letterWidth); len([]rune(text)) > room {
			text = string([]rune(text)[:max(room-1, 1)]) + "…"
		}
		c.add(`<rect x="%.1f" y="%.1f" width="10" height="3" fill="%s"/>`, x, y-5, k.colour)
		c.text(x+14, y, "start", ink, "10", text)
	}
}
