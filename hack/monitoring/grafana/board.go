// Package grafana describes dashboards and writes them as Grafana's JSON. It has
// what the project's dashboards need, and gives each panel the words that tell its
// reader what is good, what is bad and what to do.
package grafana

import (
	"errors"
	"fmt"
	"strings"
)

// Columns is the width of a dashboard in Grafana's grid.
const Columns = 24

// Board is a dashboard.
type Board struct {
	// UID is part of its address, and stays the same over releases.
	UID, Title, Description string
	Variables               []Variable
	Rows                    []Row
}

// Variable is a choice at the top of a dashboard, of the values of a label.
type Variable struct {
	// Name is how queries ask for it, $Name.
	Name, Title string
	// Values is a query of Grafana's: label_values(metric, label).
	Values string
}

// Row is a heading with its panels, laid out from left to right.
type Row struct {
	Title  string
	Panels []Panel
}

// Kind is how a panel shows its queries.
type Kind string

// The kinds of panels.
const (
	// Curves are over time, Areas are curves on top of each other.
	Curves Kind = "curves"
	Areas  Kind = "areas"
	// Numbers are the newest values, large.
	Numbers Kind = "numbers"
	// Table lists the newest values with their labels.
	Table Kind = "table"
)

// Unit is a Grafana unit.
type Unit string

// The units in use.
const (
	Count      Unit = "short"
	PerSecond  Unit = "ops"
	Seconds    Unit = "s"
	Hours      Unit = "h"
	Share      Unit = "percentunit"
	Bytes      Unit = "bytes"
	SOL        Unit = "suffix: SOL"
	SOLPerHour Unit = "suffix: SOL/h"
	Lamports   Unit = "suffix: lamports"
	Slots      Unit = "suffix: slots"
	YesNo      Unit = "bool_yes_no"
	Processors Unit = "suffix: cores"
)

// Panel is a picture of some queries.
type Panel struct {
	Title string
	// Shows says what it shows; Good, Bad and Do what its reader makes of it.
	Shows, Good, Bad, Do string
	Kind                 Kind
	Unit                 Unit
	// Width and Height are in Grafana's grid; 0 is 8 by 8.
	Width, Height int
	Queries       []Query
	// Warn and Alarm are from where on a value is bad; Below turns that round. 0
	// for both is no limit.
	Warn, Alarm float64
	Below       bool
	// Log draws powers of ten at the same distance, for what is good from far above.
	Log bool
}

// Query is a PromQL expression over the dashboard's variables.
type Query struct {
	Expr string
	// Legend names its series, {{label}} stands for a label's value.
	Legend string
}

// Validate says what the dashboard lacks; nil for a whole one.
func (b *Board) Validate() error {
	var errs []error
	if b.UID == "" || b.Title == "" || b.Description == "" || len(b.Rows) == 0 {
		errs = append(errs, errors.New("UID, Title, Description and Rows are required"))
	}
	titles := map[string]bool{}
	for i := range b.Rows {
		r := &b.Rows[i]
		if r.Title == "" || len(r.Panels) == 0 {
			errs = append(errs, fmt.Errorf("row %q: Title and Panels are required", r.Title))
		}
		for j := range r.Panels {
			p := &r.Panels[j]
			if err := p.validate(); err != nil {
				errs = append(errs, fmt.Errorf("panel %q: %w", p.Title, err))
			}
			if titles[p.Title] {
				errs = append(errs, fmt.Errorf("panel %q is there twice", p.Title))
			}
			titles[p.Title] = true
		}
	}
	return errors.Join(errs...)
}

func (p *Panel) validate() error {
	switch {
	case p.Title == "" || p.Kind == "" || p.Unit == "" || len(p.Queries) == 0:
		return errors.New("the fields Title, Kind, Unit and Queries are required")
	case p.Shows == "" || p.Good == "" || p.Bad == "" || p.Do == "":
		return errors.New("the fields Shows, Good, Bad and Do are required: a panel that nobody can read is none")
	case p.width() > Columns:
		return fmt.Errorf("its width is %d, expected at most %d", p.width(), Columns)
	case p.Below && p.Alarm > p.Warn || !p.Below && p.Alarm < p.Warn:
		return fmt.Errorf("its limits are Warn %g and Alarm %g, expected Alarm to be the worse of the two", p.Warn, p.Alarm)
	}
	for _, q := range p.Queries {
		if strings.TrimSpace(q.Expr) == "" {
			return errors.New("a query is empty")
		}
	}
	return nil
}

func (p *Panel) width() int {
	if p.Width == 0 {
		return 8
	}
	return p.Width
}

func (p *Panel) height() int {
	if p.Height == 0 {
		return 8
	}
	return p.Height
}

// Description is what Grafana shows at a panel's corner.
func (p *Panel) Description() string {
	return fmt.Sprintf("%s\n\n**Good:** %s\n\n**Bad:** %s\n\n**Do:** %s", p.Shows, p.Good, p.Bad, p.Do)
}
