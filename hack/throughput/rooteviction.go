package main

import (
	"context"
	"fmt"

	"github.com/relaypool/relaypool/hack/throughput/report"
)

// withRootEviction measures the rate of confirmed submissions while roots are evicted:
// clients read the newest root, prove and submit, and repeat that if the root was evicted.
func (s *benchRun) withRootEviction(ctx context.Context) error {
	var before, after reading
	err := underLoad(ctx, func(ctx context.Context) { s.crowd.ProveAnew(ctx, s.sizes.provingClients, s.sizes.warm/2) }, func() (err error) {
		s.warmUp(ctx, s.sizes.provingClients)
		before, after, err = s.measureWindow(ctx, s.window, s.crowd.HasSuccessSince)
		return err
	})
	if err != nil {
		return err
	}
	answers := s.tally(s.crowd.Calls(), before.at, after.at)
	refused := 0
	for _, n := range answers.refused {
		refused += n
	}
	if answers.done == 0 {
		return fmt.Errorf("no submission was completed: %s", answers.refusals())
	}
	rate := float64(answers.done) / after.at.Sub(before.at).Seconds()
	s.report.Add(report.Group{Title: fmt.Sprintf("Confirmed submissions per second, root history %d", programRootHistory), Unit: perSecond, Better: report.More, Aim: 75}, s.label, rate)
	s.report.Add(report.Group{Title: fmt.Sprintf("Requests refused (prove again or retry later), percent, root history %d", programRootHistory), Better: report.Less, Aim: 25}, s.label, 100*float64(refused)/float64(refused+answers.done))
	s.progressf("%s: completed %.0f a second; %s", s.name, rate, answers.refusals())
	return nil
}
