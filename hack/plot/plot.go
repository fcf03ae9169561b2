// Package plot draws curves, bars and texts as SVG, for the pictures of drills,
// benchmarks and dashboards. The same values give the same bytes.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
)

// Colours that differ in lightness too, for readers who cannot distinguish all hues.
const (
	Blue   = "#2563a8"
	Green  = "#2f8f4e"
	Red    = "#c8352b"
	Brown  = "#b7791f"
	Orange = "#d98a00"
	Ink    = "#1f2933"
)

// SVG attributes of texts and lines.
const (
	End    = `text-anchor="end"`
	Middle = `text-anchor="middle"`
	Bold   = `font-weight="bold"`
	Small  = `font-size="10"`
	Soft   = `fill="#66737f"`
	Grid   = `stroke="#d9dfe5"`
)

// Box is a rectangle of the picture, in pixels from its left top corner.
type Box struct{ X, Y, W, H float64 }

// Canvas collects the elements of a picture.
type Canvas struct{ out bytes.Buffer }

// New begins a picture with its own background, for light and dark pages.
func New(width, height float64, background string) *Canvas {
	c := &Canvas{}
	c.Add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="Helvetica, Arial, sans-serif" font-size="11" fill="%s">`, width, height, Ink)
	c.Rect(Box{0, 0, width, height}, Fill(background))
	return c
}

// SVG ends the picture and returns it.
func (c *Canvas) SVG() []byte {
	c.Add("</svg>")
	return c.out.Bytes()
}

// Add writes an element as it is.
func (c *Canvas) Add(format string, args ...any) { fmt.Fprintf(&c.out, format+"\n", args...) }

// Text writes a text at a position of its baseline, with SVG attributes.
func (c *Canvas) Text(x, y float64, content, attributes string) {
	c.Add(`<text x="%.1f" y="%.1f" %s>%s</text>`, x, y, attributes, Escape(content))
}

// Line draws from one position to another.
func (c *Canvas) Line(x1, y1, x2, y2 float64, attributes string) {
	c.Add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`, x1, y1, x2, y2, attributes)
}

// Rect draws a box.
func (c *Canvas) Rect(b Box, attributes string) {
	c.Add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" %s/>`, b.X, b.Y, b.W, b.H, attributes)
}

// Fill is the attribute that fills with a colour.
func Fill(colour string) string { return `fill="` + colour + `"` }

// Dashed is the attributes of a dashed line of a colour.
func Dashed(colour string) string { return `stroke="` + colour + `" stroke-dasharray="5 4"` }

// Escape escapes a text for the content of an element.
func Escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // writing to a bytes.Buffer never fails
	return b.String()
}

// Number has three significant digits, or all of an integer below ten million.
func Number(v float64) string {
	if a := math.Abs(v); a >= 999.5 && a < 1e7 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// roundUp returns the smallest number not below v that is 1, 2 or 5 times a power of ten.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= v*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}
