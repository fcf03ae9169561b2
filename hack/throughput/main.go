// Command throughput measures the relay: the time from acceptance to the first send,
// the rates of acceptance and confirmation, and the cost of a submission. It uses
// real relay processes, a real Postgres and the local chain, all on one machine.
//
// Run it by make bench, which also compares the cryptography (hack/bench/compare) and
// measures the reading of blocks (BenchmarkBlock) and the operator (BenchmarkOperator). Every round measures every set-up in turn, so
// that a machine that becomes slower affects all of them. The command prints the medians of
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
	partRootHistory part = "root-history"
	partSwaps       part = "swaps"
	partMemory      part = "memory"
	// partBlock does not need running relays: see BenchmarkBlock in relay/rpc.
	partBlock part = "block"
	// partOperator does not measure the relay: see BenchmarkOperator in controllers/cmd/operator.
	partOperator part = "operator"
)

func allParts() []part {
	return []part{partCrypto, partLatency, partCarry, partAccept, partRootHistory, partSwaps, partMemory, partBlock, partOperator}
}

// relayParts returns the parts that need running relays.
func relayParts() []part {
	return slices.DeleteFunc(allParts(), func(p part) bool { return p == partCrypto || p == partBlock || p == partOperator })
}

type settings struct {
	parts     []part
	rounds    int
	window    time.Duration
	processes []int
	rows      []int
	out       string
	profile   bool
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
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // what is deferred has been done
	}
}

func parse(args []string) (*settings, error) {
	s := &settings{parts: allParts(), processes: []int{1, 4}, rows: []int{1000, 100_000}, sizes: full()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Func("only", "`parts` to measure, separated by commas: crypto, latency, carry, accept, root-history, swaps, memory, block, operator, or relay for those that need running relays", s.only)
	flags.IntVar(&s.rounds, "rounds", 3, "how often each set-up is measured; the median counts")
	flags.DurationVar(&s.window, "window", 8*time.Second, "how long one measurement takes, after its warm-up")
	flags.Func("processes", "`numbers` of relay processes, separated by commas (default 1,4)", numbers(&s.processes))
	flags.Func("rows", "`numbers` of finished submissions in the database at the start (default 1000,100000)", numbers(&s.rows))
	flags.StringVar(&s.out, "out", filepath.Join("bin", "bench"), "`folder` for results and picture")
	flags.BoolVar(&s.profile, "profile", false, "keep profiles of relay and chain, and the database's statements, of the first round of carry")
	flags.StringVar(&s.pools, "pools", "10,50,200", "`numbers` of RelayPools for the operator, separated by commas")
	flags.DurationVar(&s.rest, "rest", 5*time.Minute, "how long the operator is measured while nothing changes, for each number of RelayPools")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 || s.rounds < 1 || s.window < time.Second {
		return nil, fmt.Errorf("want flags only, -rounds of at least 1 and -window of at least 1s; got %d other arguments, -rounds %d and -window %s", flags.NArg(), s.rounds, s.window)
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
			return fmt.Errorf("part %q is unknown: want some of crypto, latency, carry, accept, root-history, swaps, memory, block, operator, relay", name)
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
	if slices.Contains(s.parts, partCrypto) {
		if err := program(ctx, "compare the cryptography", "hack/bench/compare"); err != nil {
			return err
		}
		s.parts = slices.DeleteFunc(s.parts, func(p part) bool { return p == partCrypto })
		fmt.Println()
	}
	if slices.Contains(s.parts, partBlock) {
		fmt.Println("Reading a block of 50 M compute units, aims: 15 ms, 20 MB")
		if err := program(ctx, "measure the reading of blocks", "go", "test", "-run", "^$", "-bench", "^BenchmarkBlock$", "-count", strconv.Itoa(s.rounds), "./relay/rpc"); err != nil {
			return err
		}
		s.parts = slices.DeleteFunc(s.parts, func(p part) bool { return p == partBlock })
		fmt.Println()
	}
	operator := slices.Contains(s.parts, partOperator)
	s.parts = slices.DeleteFunc(s.parts, func(p part) bool { return p == partOperator })
	if len(s.parts) > 0 {
		if err := measure(ctx, s, folders{root: ".", state: filepath.Join(".run", "bench")}); err != nil {
			return err
		}
	}
	if operator {
		if err := program(ctx, "measure the operator", "go", "test", "-run", "^$", "-bench", "^BenchmarkOperator$", "-timeout", "3h", "-v",
			"./controllers/cmd/operator", "-args", "-pools", s.pools, "-rest", s.rest.String()); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "done in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// program runs another program of the benchmarks, which prints its own tables.
func program(ctx context.Context, what, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
