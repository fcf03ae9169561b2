package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/relay/contract"
)

// overloaded is how many times as many clients the overload has.
const overloaded = 10

// overload compares the rate of confirmed submissions with that of ten times as many clients, which repeat
// what is refused for the moment as its Retry-After says. Meanwhile another process reads.
func (s *benchRun) overload(ctx context.Context) error {
	peak, known, err := s.goodput(ctx, func(ctx context.Context) {
		s.crowd.Flood(ctx, s.sizes.saturating, s.sizes.warm/2, "", s.crowd.Stream(ctx))
	}, s.sizes.saturating, s.wholeTurns(s.sizes.saturating))
	if err != nil {
		return err
	}
	paths := []string{contract.HealthPath, contract.MerkleRootPath, strings.Replace(contract.StatusPath, "{id}", known.String(), 1)}
	finish, err := startReads(ctx, s.stand.Relays[0].URL, s.sizes.readRate, paths...)
	if err != nil {
		return err
	}
	rate, _, err := s.goodput(ctx, func(ctx context.Context) {
		s.crowd.Insist(ctx, overloaded*s.sizes.saturating, s.sizes.warm, s.crowd.Stream(ctx))
	}, overloaded*s.sizes.saturating, s.crowd.HasSuccessSince)
	read, readErr := finish()
	if err := errors.Join(err, readErr); err != nil {
		return err
	}
	if read.Failed > 0 {
		s.report.Note("%d reads during the overload were not answered with 200 (%s, round %d). Each counts as one that took %s.", read.Failed, s.label, s.round+1, readTimeout)
	}
	for _, g := range []struct {
		clients int
		rate    float64
	}{{s.sizes.saturating, peak}, {overloaded * s.sizes.saturating, rate}} {
		s.report.Add(report.Group{Title: fmt.Sprintf("Confirmed per second, concurrency %d, %d clients", s.setup.Concurrency, g.clients), Unit: perSecond, Better: report.More}, s.label, g.rate)
	}
	s.report.Add(report.Group{Title: fmt.Sprintf("Confirmed per second with %d clients, percent of the rate with %d", overloaded*s.sizes.saturating, s.sizes.saturating), Better: report.More, Aim: 85}, s.label, 100*rate/peak)
	for i, path := range []string{contract.HealthPath, contract.MerkleRootPath, contract.StatusPath} {
		took := read.Took[paths[i]]
		slices.Sort(took)
		s.report.Add(report.Group{Title: fmt.Sprintf("GET %s meanwhile, p99", path), Unit: "ms", Better: report.Less, Aim: 100}, s.label, ms(gauge.Percentile(took, 99)))
	}
	return nil
}

// goodput returns the rate of confirmed submissions, and one of them, once so many requests have been answered.
// Before that the queue fills, which takes the time of landings. end is the condition for the window's end.
func (s *benchRun) goodput(ctx context.Context, clients func(context.Context), answered int, end windowEnd) (rate float64, last uuid.UUID, err error) {
	var before, after reading
	err = underLoad(ctx, clients, func() (err error) {
		load.Sleep(ctx, 3*s.sizes.warm)
		s.warmUp(ctx, answered)
		before, after, err = s.measureWindow(ctx, s.window, end)
		return err
	})
	if err != nil {
		return 0, last, err
	}
	answers := s.tally(s.crowd.Calls(), before.at, after.at)
	if answers.done == 0 {
		return 0, last, fmt.Errorf("no submission was completed: %s", answers.refusals())
	}
	rate = float64(answers.done) / after.at.Sub(before.at).Seconds()
	took := after.processor.Since(before.processor)
	share := func(d time.Duration) float64 { return ms(d) / float64(answers.done) }
	s.progressf("%s: completed %.0f a second, after p50 %.1f s; each with %.2f ms of relays, %.2f of Postgres, %.2f of chain and clients; %.0f %% idle; %s",
		s.name, rate, gauge.Percentile(answers.took, 50).Seconds(), share(took.Relays), share(took.Database), share(took.Clients), 100*float64(took.Total-took.Busy)/float64(took.Total), answers.refusals())
	return rate, answers.last, nil
}
