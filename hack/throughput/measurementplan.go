package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/crowd"
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
	// oneByOne is a concurrency with which a relay carries next to nothing of what it accepts.
	oneByOne = 1
	// defaultConcurrency is the relay's default.
	defaultConcurrency = 256
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
				part              part
				size, concurrency int
			}{{partLatency, latencyRootHistory, concurrency}, {partCarry, carryRootHistory, concurrency}, {partAccept, acceptRootHistory, oneByOne}} {
				add(stand.Setup{RootHistorySize: long.size, Processes: n, Concurrency: long.concurrency, Rows: rows}, label, long.part, false)
			}
		}
	}
	first := fmt.Sprintf("%s, %d rows", plural(1), s.rows[0])
	add(stand.Setup{RootHistorySize: acceptRootHistory, Processes: 1, Concurrency: oneByOne, Rows: s.rows[0]}, first, partForged, false)
	add(stand.Setup{RootHistorySize: carryRootHistory, Processes: 1, Concurrency: defaultConcurrency, Rows: s.rows[0]}, first, partOverload, false)
	add(stand.Setup{RootHistorySize: acceptRootHistory, Processes: 1, Concurrency: concurrency, Rows: s.rows[0]}, first, partClients, false)
	for _, n := range s.processes {
		add(stand.Setup{RootHistorySize: programRootHistory, Processes: n, Concurrency: concurrency, Rows: s.rows[0], Limits: true}, fmt.Sprintf("%s, %d rows", plural(n), s.rows[0]), partRootHistory, false)
	}
	for _, n := range s.processes {
		add(stand.Setup{RootHistorySize: carryRootHistory, Processes: n, Concurrency: concurrency, Rows: s.rows[0], Swaps: true}, fmt.Sprintf("%s, %d rows", plural(n), s.rows[0]), partSwaps, false)
	}
	add(stand.Setup{RootHistorySize: acceptRootHistory, Processes: 1, Concurrency: manyInFlight, Rows: s.rows[0], NoEarlyAttempts: true}, first, partMemory, true)
	for _, leaves := range []uint64{0, s.sizes.leaves} {
		add(stand.Setup{RootHistorySize: programRootHistory, Processes: 1, Concurrency: concurrency, Rows: s.rows[0], SeedLeaves: leaves}, fmt.Sprintf("%d leaves", leaves), partList, true)
	}
	return list
}

func plural(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

// benchRun is a running session.
type benchRun struct {
	*bench
	*session
	name  string
	round int
	stand *stand.Stand
	crowd *crowd.Crowd
	// bareCheckBefore is the time of a bare check before the part's load, in milliseconds; bareCheckAfter after
	// it, once bareCheck was called.
	bareCheckBefore, bareCheckAfter float64
}

// bareCheck is the time of a bare check about when the part was measured, in milliseconds. It is called after the
// load.
func (s *benchRun) bareCheck() float64 {
	if s.bareCheckAfter == 0 {
		s.bareCheckAfter = s.measureBareCheck()
	}
	return (s.bareCheckBefore + s.bareCheckAfter) / 2
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
	run := &benchRun{bench: b, session: s, name: name, round: round, stand: st, crowd: clients, bareCheckBefore: b.measureBareCheck()}
	run.progressf("%s: set up in %.1f s", name, time.Since(began).Seconds())
	measures := map[part]func(context.Context) error{
		partLatency: run.latencyAndCalls, partCarry: run.carry, partAccept: run.accept, partForged: run.forged, partOverload: run.overload, partClients: run.clients, partRootHistory: run.withRootEviction, partSwaps: run.swap, partMemory: run.memory, partList: run.list,
	}
	if err := measures[s.part](ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}
