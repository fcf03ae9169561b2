// Command throughput measures the relay: the time from acceptance to the first send,
// the rates of acceptance and confirmation, and the cost of a submission. It uses
// real relay processes, a real Postgres and the local chain, all on one machine.
//
// Run it by make bench, which also compares the cryptography (hack/bench/compare) and
// measures the reading of blocks, ways of sending (BenchmarkLanding) and the operator
// (BenchmarkOperator). Every round measures every set-up in turn, so that a machine that becomes slower affects all of them. The command prints the medians of
// the rounds with their spread, and compares each set-up with the first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type part string

const (
	partCrypto      part = "crypto"
	partLatency     part = "latency"
	partCarry       part = "carry"
	partAccept      part = "accept"
	partForged      part = "forged"
	partOverload    part = "overload"
	partClients     part = "clients"
	partRootHistory part = "root-history"
	partSwaps       part = "swaps"
	partMemory      part = "memory"
	partList        part = "list"
	partBlock       part = "block"
	partLanding     part = "landing"
	partOperator    part = "operator"
)

func allParts() []part {
	return []part{partCrypto, partLatency, partCarry, partAccept, partForged, partOverload, partClients, partRootHistory, partSwaps, partMemory, partList, partBlock, partLanding, partOperator}
}

func partNames() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(allParts()), "[]"), " ", ", ")
}

// relayParts returns the parts that need running relays.
func relayParts() []part {
	return slices.DeleteFunc(allParts(), func(p part) bool {
		return slices.ContainsFunc((&settings{}).programs(), func(o ownProgram) bool { return o.part == p })
	})
}

type settings struct {
	parts     []part
	rounds    int
	window    time.Duration
	processes []int
	rows      []int
	endpoints int
	out       string
	profile   bool
	crypto    bool // was measured before
	page      string
	sizes     sizes
	// pools and rest are passed to BenchmarkOperator, which checks them.
	pools string
	rest  time.Duration
}

// folders has the folders of a run: root is the checkout, and state is the folder of
// database and logs, which is emptied first.
type folders struct{ root, state string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	start := run
	if len(os.Args) > 1 && os.Args[1] == readsArgument {
		start = runReads
	}
	if err := start(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // what is deferred has been done
	}
}

func parse(args []string) (*settings, error) {
	s := &settings{parts: allParts(), processes: []int{1, 4}, rows: []int{1000, 100_000, 1_000_000}, sizes: full()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Func("only", "`parts` to measure, separated by commas: "+partNames()+", or relay for those that need running relays", s.only)
	flags.IntVar(&s.rounds, "rounds", 3, "how often each set-up is measured; the median counts")
	flags.DurationVar(&s.window, "window", 8*time.Second, "how long one measurement takes, after its warm-up")
	flags.Func("processes", "`numbers` of relay processes, separated by commas (default 1,4)", numbers(&s.processes))
	flags.Func("rows", "`numbers` of finished submissions in the database at the start (default 1000,100000,1000000)", numbers(&s.rows))
	flags.IntVar(&s.endpoints, "endpoints", 1, "as how many RPC endpoints the relays see the chain")
	flags.StringVar(&s.out, "out", filepath.Join("bin", "bench"), "`folder` for results and picture")
	flags.StringVar(&s.page, "page", "", "also write the figures that have an aim, and the further tables, to this `file`, as a page of the documentation")
	flags.BoolVar(&s.profile, "profile", false, "keep profiles of relay and chain, and the database's statements, of the first round of latency, carry and swaps")
	flags.StringVar(&s.pools, "pools", "10,50,200", "`numbers` of RelayPools for the operator, separated by commas")
	flags.DurationVar(&s.rest, "rest", 5*time.Minute, "how long the operator is measured while nothing changes, for each number of RelayPools")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 || s.rounds < 1 || s.endpoints < 1 || s.window < time.Second {
		return nil, fmt.Errorf("want flags only, -rounds and -endpoints of at least 1, and -window of at least 1s; got %d other arguments, -rounds %d, -endpoints %d and -window %s", flags.NArg(), s.rounds, s.endpoints, s.window)
	}
	return s, nil
}

func (s *settings) only(text string) error {
	s.parts = nil
	for name := range strings.SplitSeq(text, ",") {
		switch p := part(name); {
		case name == "relay":
			s.parts = append(s.parts, relayParts()...)
		case slices.Contains(allParts(), p):
			s.parts = append(s.parts, p)
		default:
			return fmt.Errorf("part %q is unknown: want some of %s, relay", name, partNames())
		}
	}
	return nil
}

func numbers(into *[]int) func(string) error {
	return func(text string) error {
		*into = nil
		for word := range strings.SplitSeq(text, ",") {
			var n int
			if _, err := fmt.Sscanf(word, "%d", &n); err != nil || n < 1 {
				return fmt.Errorf("%q is not a number above zero", word)
			}
			*into = append(*into, n)
		}
		return nil
	}
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, o := range s.programs() {
		if !slices.Contains(s.parts, o.part) {
			continue
		}
		fmt.Println(o.title)
		command := exec.CommandContext(ctx, o.command[0], o.command[1:]...)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		if err := command.Run(); err != nil {
			return fmt.Errorf("measure %s: %w", o.part, err)
		}
		fmt.Println()
	}
	s.crypto = slices.Contains(s.parts, partCrypto)
	if s.parts = slices.DeleteFunc(s.parts, func(p part) bool { return !slices.Contains(relayParts(), p) }); len(s.parts) > 0 {
		if err := measure(ctx, s, folders{root: ".", state: filepath.Join(".run", "bench")}); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "done in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// ownProgram measures a part that needs no running relays, and prints its own tables.
type ownProgram struct {
	part    part
	title   string
	command []string
}

func (s *settings) programs() []ownProgram {
	bench := func(name, folder string, args ...string) []string {
		return append([]string{"go", "test", "-run", "^$", "-bench", "^" + name + "$", "-timeout", "3h", folder}, args...)
	}
	return []ownProgram{
		{partCrypto, "Cryptography", []string{"hack/bench/compare"}},
		{partBlock, "Reading a block of 50 M compute units, aims: 15 ms, 20 MB", bench("BenchmarkBlock", "./relay/rpc", "-count", strconv.Itoa(s.rounds))},
		{partLanding, "Ways of sending, on a network that loses sends, or is busy", bench("BenchmarkLanding", "./relay/internal/txmgr", "-benchtime", strconv.Itoa(24*s.rounds)+"x")},
		{partLanding, "Landing after all sends of the first transaction were lost, aim: 1.3 lives", bench("BenchmarkLostTransactions", "./relay/internal/txmgr", "-benchtime", "1x")},
		{partOperator, "Operator", bench("BenchmarkOperator", "./controllers/cmd/operator", "-v", "-args", "-pools", s.pools, "-rest", s.rest.String())},
	}
}
