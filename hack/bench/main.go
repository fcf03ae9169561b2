// Command bench compares the relay's cryptography with the alternatives that it
// was chosen over, in one run: the compared candidates take turns (A B A B),
// so that a machine that slows down half-way slows all of them, and the medians
// of the rounds are printed with their spread. Progress goes to standard error,
// the table to standard output.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

func main() {
	testing.Init() // registers test.benchtime, which testing.Benchmark reads
	rounds := flag.Int("rounds", 5, "how often each candidate is measured; the median counts")
	duration := flag.Duration("benchtime", 500*time.Millisecond, "how long one measurement takes at least")
	flag.Parse()
	if err := run(os.Stdout, os.Stderr, *rounds, duration.String()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures every group in the given number of rounds. The benchtime is a
// duration, or a number of operations such as 1x.
func run(table, progress io.Writer, rounds int, benchtime string) error {
	if rounds < 1 {
		return fmt.Errorf("rounds: want at least 1, received %d", rounds)
	}
	if err := flag.Set("test.benchtime", benchtime); err != nil {
		return fmt.Errorf("set the time of a measurement: %w", err)
	}
	groups, err := newGroups()
	if err != nil {
		return err
	}
	fmt.Fprintf(table, "%s, %d CPUs; medians of %d rounds of at least %s, candidates of a group in turn\n", runtime.Version(), runtime.NumCPU(), rounds, benchtime)
	fmt.Fprintln(table, strings.Join(versions("github.com/consensys/gnark-crypto", "github.com/iden3/go-iden3-crypto"), ", "))
	for i, g := range groups {
		prefix := fmt.Sprintf("[%d/%d]", i+1, len(groups))
		results, err := g.measure(progress, prefix, rounds)
		if err != nil {
			return err
		}
		if err := g.print(table, results); err != nil {
			return fmt.Errorf("print results: %w", err)
		}
	}
	return nil
}

// versions lists the modules compared with, as this binary was built with them.
func versions(paths ...string) []string {
	var out []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(paths, m.Path) {
				out = append(out, m.Path+" "+m.Version)
			}
		}
	}
	return out
}

// candidate is one way to do a group's operation.
type candidate struct {
	name  string
	bench func(*testing.B)
}

// group is a set of candidates that are compared with the first of them.
type group struct {
	title      string
	cores      int // for GOMAXPROCS
	candidates []candidate
}

// result holds the rounds of one candidate.
type result struct {
	perOperation []time.Duration // sorted
	allocs       int64           // per operation
}

func (r result) median() time.Duration { return r.perOperation[len(r.perOperation)/2] }

// measure takes one measurement of each candidate in every round.
func (g group) measure(progress io.Writer, prefix string, rounds int) ([]result, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(g.cores))
	results := make([]result, len(g.candidates))
	for round := range rounds {
		for i, c := range g.candidates {
			r := testing.Benchmark(c.bench)
			if r.N == 0 {
				return nil, fmt.Errorf("%s, %s: the operation failed, for the reason above", g.title, c.name)
			}
			took := time.Duration(r.NsPerOp())
			results[i].perOperation = append(results[i].perOperation, took)
			results[i].allocs = r.AllocsPerOp()
			fmt.Fprintf(progress, "%s %s, round %d of %d: %s: %s\n", prefix, g.title, round+1, rounds, c.name, format(took))
		}
	}
	for _, r := range results {
		slices.Sort(r.perOperation)
	}
	return results, nil
}

// print writes the group's table. The ratio tells how much longer a candidate
// takes than the first one.
func (g group) print(w io.Writer, results []result) error {
	fmt.Fprintf(w, "\n%s\n", g.title)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "median\tfastest\tslowest\tallocations\tratio\t  candidate")
	base := results[0].median()
	for i, r := range results {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%d\t%.2f\t  %s\n",
			format(r.median()), format(r.perOperation[0]), format(r.perOperation[len(r.perOperation)-1]),
			r.allocs, float64(r.median())/float64(base), g.candidates[i].name)
	}
	return tab.Flush()
}

// format shows one or two decimals, in the unit that suits.
func format(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
	}
}
