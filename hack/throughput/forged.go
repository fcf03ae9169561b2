package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/relaypool/relaypool/hack/throughput/crowd"
	"github.com/relaypool/relaypool/hack/throughput/report"
)

// forged compares the processor time of floods in which some proofs, or all, are another request's with that
// of a flood of true ones. As for accept, the relay carries only one submission at a time.
func (s *benchRun) forged(ctx context.Context) error {
	var alone float64
	for i, flood := range []struct {
		title  string
		one    int // forged, of that many; 0 for none
		status int
	}{
		{title: "true proofs"},
		{title: "one forged proof in 16", one: 16},
		{title: "forged proofs", one: 1},
	} {
		took, err := s.flood(ctx, flood.one)
		if err != nil {
			return fmt.Errorf("a flood of %s: %w", flood.title, err)
		}
		s.report.Add(report.Group{Title: "Processor time of relays and Postgres per request, flood of " + flood.title, Unit: "ms", Better: report.Less}, s.label, took)
		if i == 0 {
			alone = took
			continue
		}
		s.report.Add(report.Group{Title: "Processor time of a flood of " + flood.title + ", in floods of true ones", Better: report.Less, Aim: 2}, s.label, took/alone)
		s.progressf("%s: a flood of %s takes %.2f times a flood of true ones", s.name, flood.title, took/alone)
	}
	return nil
}

// flood returns the processor time of a request, in milliseconds, when one in so many is forged.
func (s *benchRun) flood(ctx context.Context, one int) (took float64, err error) {
	bodies, err := s.crowd.Prepare(ctx, s.sizes.forgedRequests)
	if err != nil {
		return 0, err
	}
	forgeries := 0
	for i := range bodies {
		if one > 0 && i%one == one/2 {
			forgeries++
			if bodies[i], err = crowd.Forge(bodies[i], bodies[(i+1)%len(bodies)]); err != nil {
				return 0, err
			}
		}
	}
	s.crowd.Calls()
	before, err := s.read(ctx)
	if err != nil {
		return 0, err
	}
	s.crowd.Flood(ctx, s.sizes.accept, s.sizes.warm/6, "respond-async", crowd.SourceOf(bodies))
	after, err := s.read(ctx)
	if err != nil {
		return 0, err
	}
	answers := s.tally(s.crowd.Calls(), before.at, after.at)
	refused := answers.refused[fmt.Sprintf("%d proof_invalid", http.StatusBadRequest)]
	if refused != forgeries || answers.done != len(bodies)-forgeries {
		return 0, fmt.Errorf("%d accepted, expected %d; %s, expected %d times proof_invalid", answers.done, len(bodies)-forgeries, answers.refusals(), forgeries)
	}
	cost := after.processor.Since(before.processor)
	return ms(cost.Relays+cost.Database) / float64(len(bodies)), nil
}
