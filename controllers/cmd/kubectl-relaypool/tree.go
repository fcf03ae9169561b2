package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// branch is a line of a tree: cells that are aligned with those of its siblings, and the lines
// below it.
type branch struct {
	cells []string
	below []branch
}

// leaf makes a line without others below it.
func leaf(cells ...string) branch { return branch{cells: cells} }

// writeBelow writes the lines below one that is written already.
func writeBelow(w io.Writer, indent string, lines []branch) {
	widths := columnWidths(lines)
	for i := range lines {
		mark, more := "├─ ", "│  "
		if i == len(lines)-1 {
			mark, more = "└─ ", "   "
		}
		fmt.Fprintln(w, indent+mark+aligned(lines[i].cells, widths))
		writeBelow(w, indent+more, lines[i].below)
	}
}

func columnWidths(lines []branch) (widths []int) {
	for i := range lines {
		for column, cell := range lines[i].cells {
			if column == len(widths) {
				widths = append(widths, 0)
			}
			widths[column] = max(widths[column], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// aligned joins cells, each but the last filled up to its column's width.
func aligned(cells []string, widths []int) string {
	var b strings.Builder
	for column, cell := range cells {
		b.WriteString(cell)
		if column < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell)+2))
		}
	}
	return strings.TrimRight(b.String(), " ")
}
