// Package report shows the figures of the benchmark: as tables for a reader, in JSON
// for a program and as a picture.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
)

// Better tells which of two values is better.
type Better string

// The values of Better.
const (
	Less Better = "less"
	More Better = "more"
)

// Group is one quantity under several set-ups, compared with the first.
type Group struct {
	Title string `json:"title"`
	// Unit is printed after each value; empty for a count.
	Unit   string `json:"unit"`
	Better Better `json:"better"`
	// Aim is what the value should reach; 0 for none.
	Aim float64 `json:"aim,omitempty"`
	// Table is the heading of the page's table that has the group. Without one a group with an aim is in
	// the first table, and any other is not on the page.
	Table string `json:"table,omitempty"`
	Rows  []*Row `json:"rows"`
}

// Row is a set-up with one value for each round.
type Row struct {
	Label  string    `json:"label"`
	Values []float64 `json:"values"`
}

// Median returns the median of the rounds.
func (r *Row) Median() float64 { return gauge.Median(slices.Clone(r.Values)) }

// Report collects groups in the order in which they are first named.
type Report struct {
	// Heading has lines about the machine and the method.
	Heading []string `json:"heading"`
	Groups  []*Group `json:"groups"`
	// Sections are more of the page, in Markdown.
	Sections []string `json:"sections,omitempty"`
	// Notes are the remarks on the run for a reader.
	Notes []string `json:"notes"`
}

// Add adds one round's value under a group, which the first call describes.
func (r *Report) Add(g Group, label string, value float64) {
	at := slices.IndexFunc(r.Groups, func(other *Group) bool { return other.Title == g.Title })
	if at < 0 {
		at = len(r.Groups)
		r.Groups = append(r.Groups, &g)
	}
	group := r.Groups[at]
	row := slices.IndexFunc(group.Rows, func(other *Row) bool { return other.Label == label })
	if row < 0 {
		row = len(group.Rows)
		group.Rows = append(group.Rows, &Row{Label: label})
	}
	group.Rows[row].Values = append(group.Rows[row].Values, value)
}

// Note adds a line for the reader, once.
func (r *Report) Note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(r.Notes, line) {
		r.Notes = append(r.Notes, line)
	}
}

// Print writes the tables.
func (r *Report) Print(w io.Writer) error {
	for _, line := range r.Heading {
		fmt.Fprintln(w, line)
	}
	for _, g := range r.Groups {
		if err := g.print(w); err != nil {
			return fmt.Errorf("print results: %w", err)
		}
	}
	for _, section := range r.Sections {
		fmt.Fprintf(w, "\n%s", section)
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range r.Notes {
		fmt.Fprintln(w, line)
	}
	return nil
}

// byHand begins the part of a page that people write.
const byHand = "<!-- by hand -->"

// Page returns the medians of the figures that have an aim or a table, as a page of the documentation. What
// people have written on the old page stays.
func (r *Report) Page(old []byte) []byte {
	tables := []string{""}
	for _, g := range r.Groups {
		if !slices.Contains(tables, g.Table) {
			tables = append(tables, g.Table)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Performance\n\nWritten by `make bench ARGS='-profile -page docs/performance.md'`. %s\n", strings.Join(r.Heading, ". "))
	for _, table := range tables {
		if table != "" {
			fmt.Fprintf(&b, "\n## %s\n", table)
		}
		r.table(&b, table)
		if table == "" {
			b.WriteString("\nAims that are missed are bold. Those of latency, acceptance and processor time are multiples of a bare\ncheck: gnark-crypto's of the four pairings of a Groth16 proof, on one core.\n")
		}
	}
	for _, section := range r.Sections {
		b.WriteString("\n" + section)
	}
	if at := bytes.Index(old, []byte(byHand)); at >= 0 {
		b.WriteString("\n")
		b.Write(old[at:])
	}
	return b.Bytes()
}

// table writes the table with a heading: a row for each group and a column for each set-up.
func (r *Report) table(b *bytes.Buffer, heading string) {
	var groups []*Group
	var labels []string
	for _, g := range r.Groups {
		if g.Table != heading || heading == "" && g.Aim == 0 {
			continue
		}
		groups = append(groups, g)
		for _, row := range g.Rows {
			if !slices.Contains(labels, row.Label) && row.Label != "" {
				labels = append(labels, row.Label)
			}
		}
	}
	if len(labels) == 0 {
		labels = []string{""}
	}
	fmt.Fprintf(b, "\n||aim|%s|\n|---|---|%s\n", strings.Join(labels, "|"), strings.Repeat("---|", len(labels)))
	for _, g := range groups {
		cells := make([]string, len(labels))
		for _, row := range g.Rows {
			cells[max(0, slices.Index(labels, row.Label))] = g.cell(row.Median())
		}
		aim := ""
		if g.Aim != 0 {
			aim = g.format(g.Aim)
		}
		fmt.Fprintf(b, "|%s|%s|%s|\n", g.Title, aim, strings.Join(cells, "|"))
	}
}

// cell is a value that is bold when it misses the aim.
func (g *Group) cell(v float64) string {
	if missed := g.Better == Less && v > g.Aim || g.Better == More && v < g.Aim; g.Aim != 0 && missed {
		return "**" + g.format(v) + "**"
	}
	return g.format(v)
}

func (g *Group) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n", g.heading())
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "median\tlowest\thighest\tratio\t  set-up")
	base := g.Rows[0].Median()
	for _, row := range g.Rows {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t  %s\n", g.format(row.Median()), g.format(slices.Min(row.Values)), g.format(slices.Max(row.Values)), ratio(row.Median(), base), row.Label)
	}
	return tab.Flush()
}

func (g *Group) heading() string {
	if g.Aim == 0 {
		return g.Title
	}
	bound := "at least"
	if g.Better == Less {
		bound = "less than"
	}
	return fmt.Sprintf("%s (aim: %s %s)", g.Title, bound, g.format(g.Aim))
}

// format shows three digits or more, with the unit.
func (g *Group) format(v float64) string {
	digits := 2
	switch {
	case v >= 100:
		digits = 0
	case v >= 10:
		digits = 1
	}
	text := fmt.Sprintf("%.*f", digits, v)
	if g.Unit != "" {
		text += " " + g.Unit
	}
	return text
}

func ratio(v, base float64) string {
	if base == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v/base)
}

// Write writes results.json and results.svg into a folder and returns their paths.
func (r *Report) Write(folder string) (paths []string, err error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("write results: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode results: %w", err)
	}
	var errs []error
	for _, file := range []struct {
		name    string
		content []byte
	}{{"results.json", append(text, '\n')}, {"results.svg", r.SVG()}} {
		path := filepath.Join(folder, file.name)
		errs = append(errs, os.WriteFile(path, file.content, 0o600))
		paths = append(paths, path)
	}
	return paths, errors.Join(errs...)
}
