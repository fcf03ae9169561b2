package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
)

const (
	megabyte = 1 << 20
	// tolerance is how much more a RelayPool may cost among many than among few
	// before that is told: times on a busy machine differ by as much.
	tolerance = 1.5
	// soon is what times have to be above to be compared, in seconds: below it they
	// tell more of the machine than of the operator.
	soon = 5
	// some is the like for processor time at rest, in parts of 100 of a core.
	some = 5
	// crowded is the share of the machine, of 100, above which other programs decide
	// how long something takes. Processor times and counts suffer less.
	crowded = 50
)

// growth says what becomes of a figure when there are more RelayPools.
type growth int

const (
	// whole figures are those of all RelayPools: twice as many take twice as much
	// at most.
	whole growth = iota
	// single figures are those of one RelayPool: they stay.
	single
	// based figures have a part that is there without any RelayPool.
	based
)

// row is one line of the table.
type row struct {
	name   string
	value  func(r *result) float64
	form   func(v float64) string
	growth growth
	// least is what the figure has to be above to be compared.
	least float64
}

func rows() []row {
	seconds := func(v float64) string { return fmt.Sprintf("%.1f s", v) }
	count := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	bytes := func(v float64) string { return fmt.Sprintf("%.1f MB", v/megabyte) }
	return []row{
		{"all have their fleets after", func(r *result) float64 { return r.fleets.Seconds() }, seconds, whole, soon},
		{"all are ready after", func(r *result) float64 { return r.ready.Seconds() }, seconds, whole, soon},
		{"one is ready after, median", func(r *result) float64 { return gauge.Percentile(r.each, 50).Seconds() }, seconds, whole, soon},
		{"reads at creation, each", func(r *result) float64 { return r.creation.reads }, count, single, 0},
		{"writes at creation, each", func(r *result) float64 { return r.creation.writes }, count, single, 0},
		{"processor time at creation, each", func(r *result) float64 { return r.busy.Seconds() * 1000 }, func(v float64) string { return fmt.Sprintf("%.0f ms", v) }, single, 0},
		{"the same of API server, etcd and stand-ins", func(r *result) float64 { return r.around.Seconds() * 1000 }, func(v float64) string { return fmt.Sprintf("%.0f ms", v) }, single, 0},
		{"reads an hour at rest, each", func(r *result) float64 { return r.hourly.reads }, count, single, 0},
		{"writes an hour at rest, each", func(r *result) float64 { return r.hourly.writes }, count, single, 0},
		{"RPC calls an hour at rest, each", func(r *result) float64 { return r.rpc }, count, single, 0},
		{"processor time at rest, of a core", func(r *result) float64 { return r.cores * 100 }, func(v float64) string { return fmt.Sprintf("%.2f %%", v) }, based, some},
		{"memory, resident", func(r *result) float64 { return r.resident }, bytes, based, 0},
		{"memory, heap in use", func(r *result) float64 { return r.heap }, bytes, based, 0},
		{"reads at a restart, each", func(r *result) float64 { return r.restart.reads }, count, single, 0},
		{"writes at a restart, each", func(r *result) float64 { return r.restart.writes }, count, single, 0},
		{"not ready any more at a restart", func(r *result) float64 { return float64(r.relapsed) }, func(v float64) string { return fmt.Sprintf("%.0f", v) }, whole, 0},
		{"all are looked at after a restart", func(r *result) float64 { return r.restartTook.Seconds() }, seconds, based, soon},
	}
}

// write prints a column for each number of RelayPools, and beside what is told of
// all of them what that is for each one (of what has a base: for each one more).
func write(w io.Writer, results []*result, s *settings) error {
	if len(results) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Operator, %s, %d cores for it, API server, etcd, chain and stand-ins; at rest for %s, an hour's calls extrapolated from that; other programs took %.0f to %.0f %% of the machine\n\n| RelayPools |",
		runtime.Version(), runtime.NumCPU(), s.window, least100(results), most100(results))
	for _, r := range results {
		fmt.Fprintf(&b, " %d |", r.pools)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(results)) + "\n")
	var faults []string
	for _, line := range rows() {
		fmt.Fprintf(&b, "| %s |", line.name)
		for i := range results {
			b.WriteString(" " + line.form(line.value(results[i])) + line.each(results, i) + " |")
		}
		b.WriteString("\n")
		if fault := line.check(results); fault != "" {
			faults = append(faults, fault)
		}
	}
	last := results[len(results)-1]
	fmt.Fprintf(&b, "\nCalls at creation, each of %d, until nothing was written any more: %s\n", last.pools, kinds(last.kinds))
	fmt.Fprintf(&b, "Calls an hour at rest, each of %d: %s\n\n", last.pools, kinds(last.restKinds))
	switch {
	case len(results) == 1:
		b.WriteString("Growth: it takes two numbers of RelayPools to tell.\n")
	case len(faults) == 0:
		b.WriteString("Growth: linear. No figure of one RelayPool is more than half above that among fewer of them.")
		if most100(results) > crowded {
			b.WriteString(" Times were not compared: other programs took too much of the machine.")
		}
		b.WriteString("\n")
	default:
		b.WriteString("Growth: NOT linear:\n")
		for _, fault := range faults {
			b.WriteString("- " + fault + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cost is what a RelayPool of that column takes: of figures with a base it is what
// one more takes, and there is none in the first column.
func (l *row) cost(results []*result, i int) (each float64, ok bool) {
	r := results[i]
	switch l.growth {
	case single:
		return l.value(r), true
	case whole:
		return l.value(r) / float64(r.pools), true
	default:
		if i == 0 || r.pools == results[i-1].pools {
			return 0, false
		}
		return (l.value(r) - l.value(results[i-1])) / float64(r.pools-results[i-1].pools), true
	}
}

// each writes what a RelayPool takes of a figure that has a base.
func (l *row) each(results []*result, i int) string {
	each, ok := l.cost(results, i)
	if !ok || l.growth != based {
		return ""
	}
	if strings.HasSuffix(l.form(1), "MB") {
		return fmt.Sprintf(" (%+.0f kB each)", each/1024)
	}
	return fmt.Sprintf(" (%+.3f each)", each)
}

// check says how a figure grows faster than the number of RelayPools.
func (l *row) check(results []*result) string {
	if l.least == soon && most100(results) > crowded {
		return "" // write says so
	}
	for i := range results {
		later, ok := l.cost(results, i)
		if !ok || l.value(results[i]) < l.least {
			continue
		}
		for j := range i {
			earlier, ok := l.cost(results, j)
			if ok && earlier > 0 && later > earlier*tolerance {
				return fmt.Sprintf("%s: %.1f times as much for one of %d as for one of %d", l.name, later/earlier, results[i].pools, results[j].pools)
			}
		}
	}
	return ""
}

// kinds writes what was asked how often; what is rare beside it is summed up.
func kinds(list []share) string {
	var parts []string
	var rest float64
	for _, s := range list {
		if s.each < 0.05 {
			rest += s.each
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %.1f", s.kind, s.each))
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("others %.2f", rest))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func least100(results []*result) float64 {
	v := results[0].others
	for _, r := range results {
		v = min(v, r.others)
	}
	return 100 * v
}

func most100(results []*result) float64 {
	var v float64
	for _, r := range results {
		v = max(v, r.others)
	}
	return 100 * v
}

// rounded is a time as progress tells it.
func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
