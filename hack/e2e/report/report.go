// Package report prints what the end-to-end suite sees, as it sees it, and a
// table at the end.
package report

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Report is of one run. Its methods may be called concurrently.
type Report struct {
	out io.Writer
	now func() time.Time

	mu        sync.Mutex
	began     time.Time
	scenarios []*Scenario
	figures   []figure
}

// Scenario is one part of a run.
type Scenario struct {
	// Name is short, Claim the sentence that it proves.
	Name, Claim string
	Took        time.Duration
	// Err is why it failed; nil for a success. Skipped says that it was not run.
	Err     error
	Skipped bool
	// Summary is what it counted, in a line.
	Summary string

	report *Report
	began  time.Time
}

type figure struct{ name, value string }

// New begins a report.
func New(out io.Writer, now func() time.Time) *Report {
	return &Report{out: out, now: now, began: now()}
}

// Begin opens a scenario.
func (r *Report) Begin(name, claim string) *Scenario {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Scenario{Name: name, Claim: claim, report: r, began: r.now()}
	r.scenarios = append(r.scenarios, s)
	fmt.Fprintf(r.out, "\n%s  %s: %s\n", r.clock(), name, claim)
	return s
}

// Skip notes a scenario that is not run.
func (r *Report) Skip(name, claim string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scenarios = append(r.scenarios, &Scenario{Name: name, Claim: claim, Skipped: true, report: r})
}

// Saw prints a line of what was seen, with the time since the scenario's start.
func (s *Scenario) Saw(format string, args ...any) {
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	fmt.Fprintf(s.report.out, "%s    %6.1f s  %s\n", s.report.clock(), s.report.now().Sub(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// Sum sets the line of the final table.
func (s *Scenario) Sum(format string, args ...any) {
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	s.Summary = fmt.Sprintf(format, args...)
}

// End closes a scenario.
func (s *Scenario) End(err error) {
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	s.Took, s.Err = s.report.now().Sub(s.began), err
	if err != nil {
		fmt.Fprintf(s.report.out, "%s    FAILED after %.1f s: %v\n", s.report.clock(), s.Took.Seconds(), err)
		return
	}
	fmt.Fprintf(s.report.out, "%s    passed in %.1f s\n", s.report.clock(), s.Took.Seconds())
}

// Figure keeps a measurement for the table.
func (r *Report) Figure(name, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures = append(r.figures, figure{name, fmt.Sprintf(format, args...)})
}

// Say prints a line outside of any scenario.
func (r *Report) Say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%s  %s\n", r.clock(), fmt.Sprintf(format, args...))
}

// clock is the time since the run began.
func (r *Report) clock() string {
	d := r.now().Sub(r.began).Round(time.Second)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// Table prints every scenario and figure, and reports whether none failed.
func (r *Report) Table() (passed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	passed = true
	fmt.Fprintf(r.out, "\n%-13s %-8s %9s  %s\n", "scenario", "outcome", "seconds", "what was counted")
	for _, s := range r.scenarios {
		outcome, took, text := "passed", fmt.Sprintf("%.1f", s.Took.Seconds()), s.Summary
		switch {
		case s.Skipped:
			outcome, took, text = "not run", "", "by -only"
		case s.Err != nil:
			outcome, text, passed = "FAILED", s.Err.Error(), false
		}
		fmt.Fprintf(r.out, "%-13s %-8s %9s  %s\n", s.Name, outcome, took, text)
	}
	if len(r.figures) > 0 {
		fmt.Fprintln(r.out)
	}
	for _, f := range r.figures {
		fmt.Fprintf(r.out, "%-70s %s\n", f.name, f.value)
	}
	verdict := "every scenario passed"
	if !passed {
		verdict = "SCENARIOS FAILED"
	}
	fmt.Fprintf(r.out, "\n%s in %s\n", verdict, r.now().Sub(r.began).Round(time.Second))
	return passed
}
