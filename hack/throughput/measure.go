package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/crowd"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/stand"
)

// benchRun is a running session.
type benchRun struct {
	*bench
	*session
	name  string
	round int
	stand *stand.Stand
	crowd *crowd.Crowd
}

// session sets up relays, measures the session's part and stops everything.
func (b *bench) session(ctx context.Context, s *session, name string, round int) (err error) {
	began := time.Now()
	st, err := b.lab.Open(ctx, s.setup)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.End(context.WithoutCancel(ctx))) }()
	o := load.Options{Relays: st.URLs(), Simulator: st.Simulator, Mint: st.Pool.Mint, Seed: uint64(round) + 1, Now: time.Now} //nolint:gosec // a few rounds
	if st.Swaps {
		o.Market = st.Market()
	}
	clients, err := crowd.New(o)
	if err != nil {
		return err
	}
	defer clients.Close()
	run := &benchRun{bench: b, session: s, name: name, round: round, stand: st, crowd: clients}
	run.progressf("%s: set up in %.1f s", name, time.Since(began).Seconds())
	measures := map[part]func(context.Context) error{
		partLatency: run.latency, partCarry: run.carry, partAccept: run.accept, partRootHistory: run.withRootEviction, partSwaps: run.swap, partMemory: run.memory,
	}
	if err := measures[s.part](ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

const (
	// doneTimeout is far above the time until a working relay completes something.
	doneTimeout = 3 * time.Minute
	donePoll    = 100 * time.Millisecond
)

type reading struct {
	at            time.Time
	processor     gauge.Processor
	calls, router uint64
	statements    int64
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
	for _, n := range s.stand.Chain.Stats() {
		r.calls += n
	}
	r.router = s.stand.RouterCalls()
	list, err := s.stand.Statements(ctx)
	for _, st := range list {
		r.statements += st.Calls
	}
	return r, err
}

// measureWindow reads the counters before and after a window of d, or longer until done reports
// progress. Meanwhile the caller makes load.
func (s *benchRun) measureWindow(ctx context.Context, d time.Duration, done func(since time.Time) (bool, error)) (before, after reading, err error) {
	if before, err = s.read(ctx); err != nil {
		return before, after, err
	}
	load.Sleep(ctx, d)
	if err := s.awaitWork(ctx, before.at, done); err != nil {
		return before, after, err
	}
	after, err = s.read(ctx)
	s.others = append(s.others, after.processor.Since(before.processor).Others())
	return before, after, err
}

// awaitWork waits until done reports something done since then: on a busy machine nothing
// may be done within the shortest windows.
func (s *benchRun) awaitWork(ctx context.Context, since time.Time, done func(since time.Time) (bool, error)) error {
	for began := time.Now(); time.Since(began) < doneTimeout && ctx.Err() == nil; load.Sleep(ctx, donePoll) {
		if ok, err := done(since); ok || err != nil {
			return err
		}
	}
	return ctx.Err() // the caller reports the answers that came instead
}

type tally struct {
	done int
	took []time.Duration
	// refused counts answers other than 2xx by status and code.
	refused map[string]int
}

func (s *benchRun) tally(calls []load.Answer, from, to time.Time) (t tally) {
	t.refused = make(map[string]int)
	for i := range calls {
		switch c := &calls[i]; {
		case c.Status == 0 || c.At.Before(from) || !c.At.Before(to):
		case c.Status/100 == 2:
			t.done++
			t.took = append(t.took, c.At.Sub(c.Sent))
		default:
			t.refused[strings.TrimSpace(fmt.Sprintf("%d %s", c.Status, c.Code))]++
		}
	}
	slices.Sort(t.took)
	return t
}

// checkCompleted returns an error if no request succeeded. It adds a note for refusals, which
// should not occur here; on an overloaded machine they do.
func (s *benchRun) checkCompleted(what string, t *tally) error {
	if t.done == 0 {
		return fmt.Errorf("nothing was answered with a 2xx: %s", t.refusals())
	}
	s.noteRefusals(what, t)
	return nil
}

func (s *benchRun) noteRefusals(what string, t *tally) {
	if len(t.refused) > 0 {
		s.report.Note("Unexpected refusals while %s was measured (%s, round %d): %s; %d requests succeeded.", what, s.label, s.round+1, t.refusals(), t.done)
	}
}

func (t *tally) refusals() string {
	var texts []string
	for _, what := range slices.Sorted(maps.Keys(t.refused)) {
		texts = append(texts, fmt.Sprintf("%d times %s", t.refused[what], what))
	}
	return strings.Join(texts, ", ")
}

// profiles starts profiles of a window, if profiling is on. The result waits for their end.
func (s *benchRun) profiles(ctx context.Context, d time.Duration) func() error {
	if s.profiler == nil || s.round > 0 {
		return func() error { return nil }
	}
	name := fmt.Sprintf("%d-%d", s.setup.Processes, s.setup.Rows)
	if s.setup.Swaps {
		name = "swaps-" + name
	}
	done := make(chan error, 2)
	go func() { done <- s.profiler.take(ctx, s.stand.Relays[0].PID(), "relay-"+name, d) }()
	// The chain runs in this process, with the clients.
	go func() { done <- s.profiler.takeOwn("chain-"+name, func() { load.Sleep(ctx, d) }) }()
	return func() error {
		err := errors.Join(<-done, <-done)
		list, readErr := s.stand.Statements(ctx)
		var text strings.Builder
		for _, st := range list {
			fmt.Fprintf(&text, "%10.1f ms total  %8.3f ms each  %8d calls  %8d rows  %s\n", st.TotalMS, st.MeanMS, st.Calls, st.Rows, strings.Join(strings.Fields(st.Query), " "))
		}
		return errors.Join(err, readErr, os.WriteFile(filepath.Join(s.profiler.out, "statements-"+name+".txt"), []byte(text.String()), 0o600))
	}
}
