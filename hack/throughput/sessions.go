package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/hack/throughput/stand"
)

const (
	// Each root history is as short as its part allows. The relay reads the tree account,
	// 32 bytes a root, several times a second: a longer history would distort the figures.
	// latencyRootHistory keeps one root valid for a whole measurement.
	latencyRootHistory = 2048
	// carryRootHistory covers the leaves in flight, twice as many as there are clients.
	carryRootHistory = 4096
	// acceptRootHistory is so long because each submission waits behind all earlier ones.
	acceptRootHistory = 10_000
	// programRootHistory is the size of the real program's root history.
	programRootHistory = 100
	// concurrency is the concurrency of each relay. With the default, 256, waiting for
	// confirmations would limit the rate of a process.
	concurrency = 1024
	// manyInFlight exceeds the number of submissions that the memory part has in flight.
	manyInFlight = 4096
)

// session is a set-up with the part that is measured on it.
type session struct {
	setup stand.Setup
	label string
	part  part
	// once skips the session after the first round.
	once bool
}

// sessions lists the sessions of one round. The first number of processes and the first
// number of rows are the base of comparison.
func (s *settings) sessions() (list []session) {
	add := func(setup stand.Setup, label string, p part, once bool) {
		if slices.Contains(s.parts, p) {
			list = append(list, session{setup, label, p, once})
		}
	}
	for i, rows := range s.rows {
		for j, n := range s.processes {
			if i > 0 && j > 0 {
				continue // rows and processes are not varied together
			}
			label := fmt.Sprintf("%s, %d rows", plural(n), rows)
			for _, long := range []struct {
				part part
				size int
			}{{partLatency, latencyRootHistory}, {partCarry, carryRootHistory}, {partAccept, acceptRootHistory}} {
				add(stand.Setup{RootHistorySize: long.size, Processes: n, Concurrency: concurrency, Rows: rows}, label, long.part, false)
			}
		}
	}
	for _, n := range s.processes {
		add(stand.Setup{RootHistorySize: programRootHistory, Processes: n, Concurrency: concurrency, Rows: s.rows[0], Limits: true}, plural(n), partRootHistory, false)
	}
	for _, n := range s.processes {
		add(stand.Setup{RootHistorySize: carryRootHistory, Processes: n, Concurrency: concurrency, Rows: s.rows[0], Swaps: true}, plural(n), partSwaps, false)
	}
	add(stand.Setup{RootHistorySize: acceptRootHistory, Processes: 1, Concurrency: manyInFlight, Rows: s.rows[0]}, "", partMemory, true)
	return list
}

func plural(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

type bench struct {
	*settings
	folders
	lab      *stand.Lab
	report   report.Report
	profiler *profiler
	progress io.Writer
	began    time.Time
	// others are the shares of the machine that other programs took, loads the load averages.
	others []float64
	loads  []string
}

func (b *bench) progressf(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func measure(ctx context.Context, s *settings, at folders) (err error) {
	b := &bench{settings: s, folders: at, progress: os.Stderr, began: time.Now()}
	if err := errors.Join(os.RemoveAll(at.state), os.MkdirAll(at.state, 0o755)); err != nil { //nolint:gosec // Postgres runs as a user of its own, who has to pass
		return fmt.Errorf("make an empty folder: %w", err)
	}
	if b.lab, err = b.openLab(ctx); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, b.lab.Close(context.WithoutCancel(ctx)))
		if err == nil { // after an error the files help to find the cause
			err = os.RemoveAll(at.state)
		}
	}()
	b.loads = append(b.loads, gauge.Load())
	list := s.sessions()
	for round := range s.rounds {
		for i := range list {
			if round > 0 && list[i].once {
				continue
			}
			name := fmt.Sprintf("[round %d of %d, %d of %d] %s, root history %d, %s, %d rows", round+1, s.rounds, i+1, len(list), list[i].part, list[i].setup.RootHistorySize, plural(list[i].setup.Processes), list[i].setup.Rows)
			if err := b.session(ctx, &list[i], name, round); err != nil {
				return fmt.Errorf("%s: %w; logs are in %s", name, err, at.state)
			}
			b.loads = append(b.loads, gauge.Load())
		}
	}
	b.addConditions()
	if err := b.report.Print(os.Stdout); err != nil {
		return err
	}
	paths, err := b.report.Write(s.out)
	for _, path := range paths {
		fmt.Println(path)
	}
	return err
}

func (b *bench) openLab(ctx context.Context) (*stand.Lab, error) {
	var flags []string
	if b.profile {
		folder, err := filepath.Abs(filepath.Join(b.state, "profile"))
		if err != nil {
			return nil, err
		}
		b.profiler = &profiler{sockets: folder, out: filepath.Join(b.out, "profiles")}
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return nil, err
		}
		root, err := filepath.Abs(b.root)
		if err != nil {
			return nil, err
		}
		overlay, err := b.profiler.overlay(root)
		if err != nil {
			return nil, err
		}
		flags = []string{"-overlay", overlay}
	}
	return stand.NewLab(ctx, b.root, b.state, b.rows, b.progress, flags...)
}

// addConditions adds the conditions of the run to the report.
func (b *bench) addConditions() {
	cores := runtime.NumCPU()
	b.report.Heading = []string{
		fmt.Sprintf("%s, %d cores for relays, Postgres, local chain and clients together; medians of %d rounds of %s, set-ups in turn; load average %s", runtime.Version(), cores, b.rounds, b.window, span(b.loads)),
		fmt.Sprintf("Other programs took %.0f %% of the machine (median; up to %.0f %%).", 100*gauge.Median(b.others), 100*slices.Max(append(b.others, 0))),
	}
	if len(b.others) > 0 && gauge.Median(b.others) > 0.1 {
		b.report.Heading[1] += " Times and rates suffer from that; processor times and counts less."
	}
	b.report.Note("Rows are the finished submissions in the database at the start. A root history of %d is the real program's, and has mainnet's compute limits of a block. The longer histories (latency %d, confirmed %d, accepted %d roots) have no such limits, so that neither bounds the relay. Concurrency per process: %d.", programRootHistory, latencyRootHistory, carryRootHistory, acceptRootHistory, concurrency)
	b.report.Note("From accepted to the first send: from the row's created_at, which is before its commit, to the arrival of the first send at the chain's endpoint. Confirmed: answered with 200 to a client that waited. The database commits with fsync.")
	b.report.Note("Swaps: over the local chain's own router and market, whose processor time counts as the chain's; clients poll /status every 2 s. To tokens: from the first leg's created_at to the confirmed execution. An execution is signed once there is a price and the accounts exist that it does not create.")
}

// span returns the first and the last of the load averages, which are in order of time.
func span(loads []string) string {
	if len(loads) == 0 {
		return "unknown"
	}
	return loads[0] + " before, " + loads[len(loads)-1] + " after"
}
