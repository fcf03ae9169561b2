// Package report writes the result of a drill: in words for a reader, in JSON for a
// program and as a picture.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/drill/arena"
	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
)

// Report is the result of one drill.
type Report struct {
	Seed     uint64          `json:"seed"`
	Duration time.Duration   `json:"duration_ns"`
	Figures  []Figure        `json:"figures"`
	Checks   []verify.Result `json:"checks"`
	Events   []string        `json:"events"`
	Exits    []arena.Exit    `json:"exits"`

	timeline timeline.Timeline
	files    []string
}

// Figure is one number with its name and unit.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// Make runs all checks on the evidence.
func Make(seed uint64, duration time.Duration, o *arena.Outcome) *Report {
	r := &Report{Seed: seed, Duration: duration, Exits: o.Exits, timeline: o.Timeline}
	for _, e := range o.Events {
		r.Events = append(r.Events, e.String())
	}
	for _, check := range verify.Checks() {
		r.Checks = append(r.Checks, check.Run(o.Evidence))
	}
	r.Checks = append(r.Checks, orderlyExits(o.Exits))
	r.figures(o)
	r.timeline.Subtitle = fmt.Sprintf("%d submissions: %.0f completed, %.0f failed; %.0f swaps executed, %.0f refunded; %d events; %s",
		len(o.Evidence.Submissions), r.figure("completed"), r.figure("failed"), r.figure("swaps executed"), r.figure("swaps refunded"), len(o.Events), r.verdict())
	return r
}

func (r *Report) figures(o *arena.Outcome) {
	add := func(name string, value float64, unit string) {
		r.Figures = append(r.Figures, Figure{Name: name, Value: value, Unit: unit})
	}
	codes := make(map[string]int)
	completed, failed := 0, 0
	var waits []time.Duration
	for i := range o.Evidence.Submissions {
		s := &o.Evidence.Submissions[i]
		switch s.State {
		case "completed":
			completed++
			waits = append(waits, s.CompletedAt.Sub(s.CreatedAt))
		case "failed":
			failed++
			codes[s.Code]++
		}
	}
	slices.Sort(waits)
	swaps := newSwapFigures(o)
	add("spends started", float64(o.Clients.Spends), "")
	add("submissions", float64(len(o.Evidence.Submissions)), "")
	add("completed", float64(completed), "")
	add("failed", float64(failed), "")
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		add("failed with "+code, float64(codes[code]), "")
	}
	swaps.counts(add)
	undone, landedAgain := countUndone(o.Evidence)
	add("landings undone by forks", float64(undone), "")
	add("of these landed again", float64(landedAgain), "")
	add("not final when the wait ended", float64(o.Unfinished), "")
	add("attempts signed", float64(len(o.Evidence.Attempts)), "")
	swaps.attempts(add)
	add("transactions on the chain", float64(len(o.Evidence.Transactions)), "")
	refusals := refusals(o.Evidence.Records)
	for _, code := range slices.Sorted(maps.Keys(refusals)) {
		add("refused with "+code, float64(refusals[code]), "answers")
	}
	add("requests without an answer", float64(o.Clients.Silent), "")
	add("database connections cut", float64(o.CutConnections), "")
	add("relays that ended without database", float64(o.EndedWithoutDatabase), "")
	if len(waits) > 0 {
		add("accepted to completed, median", waits[len(waits)/2].Seconds(), "s")
		add("accepted to completed, 95 %", waits[len(waits)*95/100].Seconds(), "s")
		add("accepted to completed, longest", waits[len(waits)-1].Seconds(), "s")
	}
	swaps.times(add)
	for _, fault := range slices.Sorted(maps.Keys(o.Router)) {
		add("router answers: "+fault, float64(o.Router[fault]), "")
	}
	hostility(o, add)
	add("wait for final outcomes", o.QuietDuration.Seconds(), "s")
	add("whole drill", o.Duration.Seconds(), "s")
}

// hostility adds the answers of hostile endpoints and the answers to hostile clients.
func hostility(o *arena.Outcome, add func(name string, value float64, unit string)) {
	for _, lie := range slices.Sorted(maps.Keys(o.Lies)) {
		add("endpoint answers: false "+lie, float64(o.Lies[lie]), "")
	}
	hostile := make(map[string]int)
	for answer, count := range o.Evidence.HostileAnswers {
		hostile[fmt.Sprintf("hostile %s, answered %d %s", answer.Attack, answer.Status, answer.Code)] += count
	}
	for _, answer := range slices.Sorted(maps.Keys(hostile)) {
		add(answer, float64(hostile[answer]), "")
	}
}

// countUndone counts the relays' transactions that forks undid, and how many of them landed again.
func countUndone(e *verify.Evidence) (undone, landedAgain int) {
	for _, a := range e.Attempts {
		if e.Undone[a.Signature] {
			undone++
		}
	}
	for i := range e.Transactions {
		if tx := &e.Transactions[i]; e.Undone[tx.Signature] && slices.ContainsFunc(e.Payers, func(p verify.Payer) bool { return p.Key == tx.Payer }) {
			landedAgain++
		}
	}
	return undone, landedAgain
}

// refusals counts the answers to submissions that were refused before they were accepted, by code.
func refusals(records []load.Record) map[string]int {
	counts := make(map[string]int)
	verify.Each(records, func(_ *load.Record, _ *load.Request, a *load.Answer) {
		if a.Call != load.CallStatus && a.Code != "" && a.RequestID == uuid.Nil {
			counts[a.Code]++
		}
	})
	return counts
}

func (r *Report) figure(name string) float64 {
	for _, f := range r.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	return 0
}

// Passed reports whether every claim holds.
func (r *Report) Passed() bool {
	return !slices.ContainsFunc(r.Checks, func(c verify.Result) bool { return !c.Passed() })
}

func (r *Report) verdict() string {
	if r.Passed() {
		return "every check passed"
	}
	return "CHECKS FAILED"
}

// maxFaults bounds the faults that are printed for one check; the JSON contains all.
const maxFaults = 8

// Print writes the report for a reader.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "\nDrill with seed %d, %s of load: %s\n\nSchedule\n", r.Seed, r.Duration, r.verdict())
	for _, e := range r.Events {
		fmt.Fprintf(w, "  %s\n", e)
	}
	fmt.Fprint(w, "\nFigures\n")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "  %-52s %10.6g %s\n", f.Name, f.Value, f.Unit)
	}
	fmt.Fprint(w, "\nChecks\n")
	for i := range r.Checks {
		c := &r.Checks[i]
		mark := "passed"
		if !c.Passed() {
			mark = "FAILED"
		}
		fmt.Fprintf(w, "  %s  %-28s %s (%d examined", mark, c.Name, c.Claim, c.Examined)
		if c.Undecided > 0 {
			fmt.Fprintf(w, ", %d undecided", c.Undecided)
		}
		fmt.Fprint(w, ")\n")
		if c.Vacuous {
			fmt.Fprint(w, "          nothing to examine: the drill proves nothing\n")
		}
		for n, fault := range c.Faults {
			if n == maxFaults {
				fmt.Fprintf(w, "          and %d more, in the JSON report\n", len(c.Faults)-n)
				break
			}
			fmt.Fprintf(w, "          %s\n", fault)
		}
	}
	for _, file := range r.files {
		fmt.Fprintf(w, "\n%s", file)
	}
	fmt.Fprintln(w)
}

// Write writes the JSON report and the picture into a folder, under names that contain the seed.
func (r *Report) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	name := filepath.Join(folder, fmt.Sprintf("drill-%d", r.Seed))
	r.files = []string{name + ".json", name + ".svg"}
	return errors.Join(
		os.WriteFile(name+".json", append(text, '\n'), 0o600),
		os.WriteFile(name+".svg", timeline.SVG(&r.timeline), 0o600))
}
