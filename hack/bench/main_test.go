package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestEveryCandidateRuns measures each candidate once: it fails when one of
// them does not compute what it should.
func TestEveryCandidateRuns(t *testing.T) {
	var table, progress bytes.Buffer
	if err := run(&table, &progress, 1, "1x"); err != nil {
		t.Fatal(err)
	}
	groups, err := newGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, c := range g.candidates {
			if !strings.Contains(table.String(), c.name) || !strings.Contains(progress.String(), g.title+", round 1 of 1: "+c.name) {
				t.Errorf("%s, %s: not in table or progress", g.title, c.name)
			}
		}
	}
}

func TestRunRefusesNoRounds(t *testing.T) {
	t.Parallel()
	if err := run(&bytes.Buffer{}, &bytes.Buffer{}, 0, "1x"); err == nil {
		t.Error("accepted 0 rounds")
	}
}

func TestPrintComparesMediansWithTheFirst(t *testing.T) {
	t.Parallel()
	g := group{title: "title", candidates: []candidate{{name: "base"}, {name: "other"}}}
	var b bytes.Buffer
	err := g.print(&b, []result{
		{perOperation: []time.Duration{time.Microsecond, 2 * time.Microsecond, 9 * time.Microsecond}, allocs: 3},
		{perOperation: []time.Duration{time.Microsecond, time.Microsecond, time.Second}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"title",
		"2.0 µs 1.0 µs 9.0 µs 3 1.00 base",
		"1.0 µs 1.0 µs 1.00 s 0 0.50 other",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("%q not in:\n%s", want, b.String())
		}
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		12_345 * time.Nanosecond:       "12.3 µs",
		999_900 * time.Nanosecond:      "999.9 µs",
		1_234_567 * time.Nanosecond:    "1.23 ms",
		1_234_567_890:                  "1.23 s",
		61*time.Second + 5*time.Second: "66.00 s",
	} {
		if got := format(d); got != want {
			t.Errorf("format(%d) = %q, want %q", d, got, want)
		}
	}
}
