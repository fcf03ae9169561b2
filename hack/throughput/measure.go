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

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/hack/throughput/stand"
)

type bench struct {
	*settings
	folders
	lab      *stand.Lab
	report   report.Report
	profiler *profiler
	progress io.Writer
	began    time.Time
	// bareChecks are the times of bare checks of four pairs, in milliseconds, between the measurements. Some
	// aims are multiples of them, because machines differ, and a shared one is not always equally fast.
	bareChecks []float64
	// idle is the resident memory of a relay without leaves, in bytes.
	idle float64
	// others are the shares of the machine that other programs took. loads are the load averages.
	others []float64
	loads  []string
}

func (b *bench) progressf(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func (b *bench) measureBareCheck() float64 {
	took := ms(gauge.BareCheck())
	b.bareChecks = append(b.bareChecks, took)
	return took
}

func (b *bench) bareCheckRange() string {
	return fmt.Sprintf("%.2f ms (median; %.2f to %.2f)", gauge.Median(b.bareChecks), slices.Min(b.bareChecks), slices.Max(b.bareChecks))
}

func measure(ctx context.Context, s *settings, at folders) (err error) {
	b := &bench{settings: s, folders: at, progress: os.Stderr, began: time.Now()}
	b.measureBareCheck()
	if s.crypto {
		if err := b.addCrypto(cryptoText); err != nil {
			return err
		}
	}
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
	b.report.Add(report.Group{Title: "Bare check of four pairs, gnark-crypto, one core", Unit: "ms", Better: report.Less}, "", gauge.Median(b.bareChecks))
	b.addConditions()
	if err := b.report.Print(os.Stdout); err != nil {
		return err
	}
	paths, err := b.report.Write(s.out)
	if err == nil && s.page != "" {
		old, _ := os.ReadFile(s.page)                                                       //nolint:gosec // the flag names it; there may be none
		paths, err = append(paths, s.page), os.WriteFile(s.page, b.report.Page(old), 0o644) //nolint:gosec // a page for everybody
	}
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
	lab, err := stand.NewLab(ctx, b.root, b.state, b.rows, b.progress, flags...)
	if err != nil {
		return nil, err
	}
	lab.Endpoints = b.endpoints
	return lab, nil
}

// addConditions adds the conditions of the run to the report.
func (b *bench) addConditions() {
	cores, rounds := runtime.NumCPU(), "one round"
	if b.rounds > 1 {
		rounds = fmt.Sprintf("medians of %d rounds", b.rounds)
	}
	b.report.Heading = []string{
		fmt.Sprintf("%s, %d cores for relays, Postgres, local chain and clients together; %s of %s, set-ups in turn, but memory and list once; load average %s; a bare check took %s", runtime.Version(), cores, rounds, b.window, span(b.loads), b.bareCheckRange()),
		fmt.Sprintf("Other programs took %.0f %% of the machine (median; up to %.0f %%).", 100*gauge.Median(b.others), 100*slices.Max(append(b.others, 0))),
	}
	if len(b.others) > 0 && gauge.Median(b.others) > 0.1 {
		b.report.Heading[1] += " Times and rates suffer from that; processor times and counts less."
	}
	if b.endpoints > 1 {
		b.report.Note("Relays see the chain as %d RPC endpoints, which never differ.", b.endpoints)
	}
	b.report.Note("Rows are the finished submissions in the database at the start. A root history of %d is the real program's, and has mainnet's compute limits of a block. The longer histories (latency %d, confirmed %d, accepted %d roots) have no such limits, so that neither bounds the relay. Concurrency per process: %d, overload %d; where acceptance is measured, alone and with forged proofs, %d, so that next to nothing is carried meanwhile.", programRootHistory, latencyRootHistory, carryRootHistory, acceptRootHistory, concurrency, defaultConcurrency, oneByOne)
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

const (
	// doneTimeout is far above the time until a working relay has answered all clients.
	doneTimeout = 3 * time.Minute
	donePoll    = 20 * time.Millisecond
)

type reading struct {
	at         time.Time
	processor  gauge.Processor
	calls      map[string]uint64 // RPC calls by method
	router     uint64
	statements map[string]int64 // SQL statements by kind
}

func (s *benchRun) read(ctx context.Context) (r reading, err error) {
	r.at = time.Now()
	var relays []int
	for _, relay := range s.stand.Relays {
		relays = append(relays, relay.PID())
	}
	if r.processor, err = gauge.ReadProcessor(relays, s.stand.Postgres.Pid()); err != nil {
		return r, err
	}
	r.calls = s.stand.Chain.Stats()
	r.router = s.stand.RouterCalls()
	list, err := s.stand.Statements(ctx)
	r.statements = make(map[string]int64)
	for i := range list {
		r.statements[list[i].Kind()] += list[i].Calls
	}
	return r, err
}

// windowEnd reports whether a window that began then, and is as long as it has to be, may end.
type windowEnd func(began time.Time) (bool, error)

// wholeTurns ends a window when the number of its answers is a multiple of the number of clients. Those of a busy
// relay are answered in waves, and a window that ended amid one would have the costs of a wave without its answers.
func (s *benchRun) wholeTurns(clients int) windowEnd {
	want := 0
	return func(began time.Time) (bool, error) {
		n := s.crowd.AnsweredSince(began)
		if want == 0 {
			want = max(1, (n+clients-1)/clients) * clients
		}
		return n >= want, nil
	}
}

// measureWindow reads the counters before and after a window of d, or longer until end permits it.
// Meanwhile the caller makes load.
func (s *benchRun) measureWindow(ctx context.Context, d time.Duration, end windowEnd) (before, after reading, err error) {
	if before, err = s.read(ctx); err != nil {
		return before, after, err
	}
	load.Sleep(ctx, d)
	if err := s.awaitWork(ctx, before.at, end); err != nil {
		return before, after, err
	}
	after, err = s.read(ctx)
	s.countOthers(before, after)
	return before, after, err
}

// countOthers counts what other programs took of the machine meanwhile.
func (s *benchRun) countOthers(before, after reading) {
	s.others = append(s.others, after.processor.Since(before.processor).Others())
}

// awaitWork waits until the window that began then may end. On a busy machine the shortest windows may have no
// answer yet.
func (s *benchRun) awaitWork(ctx context.Context, since time.Time, end windowEnd) error {
	for began := time.Now(); time.Since(began) < doneTimeout && ctx.Err() == nil; load.Sleep(ctx, donePoll) {
		if ok, err := end(since); ok || err != nil {
			return err
		}
	}
	return ctx.Err() // the caller reports the answers that came instead
}
