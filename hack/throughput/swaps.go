package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/hack/throughput/stand"
)

const (
	// steadySwapWindows is the number of windows for the steady swaps: their rate is low,
	// and percentiles need enough swaps.
	steadySwapWindows = 2
	// swapWindow is the shortest time in which swaps are counted; each takes some seconds.
	swapWindow   = 4 * time.Second
	executedSwap = "executed swap"
)

// swap measures swaps: their durations at a steady rate, and their rate when each client
// starts the next swap after the end of its last one.
func (s *benchRun) swap(ctx context.Context) error {
	if err := s.steadySwaps(ctx); err != nil {
		return err
	}
	return s.carrySwaps(ctx)
}

// steadySwaps measures the time from submission to tokens, by step.
func (s *benchRun) steadySwaps(ctx context.Context) error {
	before, after, answered, err := s.steady(ctx, "the latency of swaps", s.sizes.swapRate, steadySwapWindows)
	if err != nil {
		return err
	}
	swaps, err := s.stand.Executed(ctx, before.at, after.at)
	if err != nil {
		return err
	}
	if len(swaps) < answered.done {
		return fmt.Errorf("the database has the steps of %d swaps, expected %d", len(swaps), answered.done)
	}
	for _, step := range []struct {
		title string
		took  func(*stand.Swap) time.Duration
	}{
		{"Swap, from submission to tokens", func(w *stand.Swap) time.Duration { return w.Tokens.Sub(w.Accepted) }},
		{"Swap, first leg: accepted to confirmed", func(w *stand.Swap) time.Duration { return w.Funded.Sub(w.Accepted) }},
		{"Swap, price: first leg confirmed to the execution signed", func(w *stand.Swap) time.Duration { return w.Signed.Sub(w.Funded) }},
		{"Swap, execution: signed to confirmed", func(w *stand.Swap) time.Duration { return w.Tokens.Sub(w.Signed) }},
	} {
		took := make([]time.Duration, len(swaps))
		for i := range swaps {
			took[i] = step.took(&swaps[i])
		}
		slices.Sort(took)
		for _, percentile := range []float64{50, 95} {
			s.report.Add(report.Group{Title: fmt.Sprintf("%s, p%.0f, at %.0f a second", step.title, percentile, s.sizes.swapRate), Unit: "s", Better: report.Less}, s.label, gauge.Percentile(took, percentile).Seconds())
		}
		s.progressf("%s: %s p50 %.2f s, p95 %.2f s", s.name, step.title, gauge.Percentile(took, 50).Seconds(), gauge.Percentile(took, 95).Seconds())
	}
	return nil
}

// carrySwaps measures the rate of executed swaps with as many clients as the relays can serve.
func (s *benchRun) carrySwaps(ctx context.Context) error {
	var before, after reading
	window := max(s.window, swapWindow)
	err := underLoad(ctx, func(ctx context.Context) {
		s.crowd.Flood(ctx, s.sizes.swaps, s.sizes.warm, "", s.crowd.Stream(ctx))
	}, func() (err error) {
		s.warmUp(ctx, s.sizes.swaps)
		finishProfiles := s.profiles(ctx, "swaps", window)
		before, after, err = s.measureWindow(ctx, window, func(since time.Time) (bool, error) {
			swaps, err := s.stand.Executed(ctx, since, time.Now())
			return len(swaps) > 0, err
		})
		return errors.Join(err, finishProfiles())
	})
	if err != nil {
		return err
	}
	swaps, err := s.stand.Executed(ctx, before.at, after.at)
	if err != nil {
		return err
	}
	answers := s.tally(s.crowd.Calls(), before.at, after.at)
	if len(swaps) == 0 {
		return fmt.Errorf("no swap was executed: %s", answers.refusals())
	}
	s.noteRefusals("the rate of executed swaps", &answers)
	rate := float64(len(swaps)) / after.at.Sub(before.at).Seconds()
	s.report.Add(report.Group{Title: "Executed swaps per second, long root history", Unit: perSecond, Better: report.More}, s.label, rate)
	s.costs(executedSwap, before, after, len(swaps), costAims{})
	s.report.Add(report.Group{Title: "Router calls per " + executedSwap, Better: report.Less}, s.label, float64(after.router-before.router)/float64(len(swaps)))
	s.progressf("%s: executed %.1f swaps a second; clients got the result after p50 %.1f s", s.name, rate, gauge.Percentile(answers.took, 50).Seconds())
	return nil
}
