package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/crowd"
	"github.com/relaypool/relaypool/hack/throughput/report"
)

// acceptPoll is short beside the second in which a fast machine accepts all requests.
const acceptPoll = 5 * time.Millisecond

// accept measures asynchronous acceptance by relays that carry only one submission at a time, so that
// the processor time is that of acceptance.
func (s *benchRun) accept(ctx context.Context) error {
	bodies, err := s.crowd.Prepare(ctx, s.sizes.acceptRequests)
	if err != nil {
		return err
	}
	began, err := s.read(ctx)
	if err != nil {
		return err
	}
	before, after := began, began
	s.crowd.Calls()
	err = underLoad(ctx, func(ctx context.Context) {
		s.crowd.Flood(ctx, s.sizes.accept, s.sizes.warm/6, "respond-async", crowd.SourceOf(bodies))
	}, func() error {
		load.Sleep(ctx, s.sizes.warm/3)
		var err, readErr error
		if before, err = s.read(ctx); err != nil {
			return err
		}
		for s.crowd.Answered() < len(bodies) && time.Since(before.at) < s.sizes.acceptWindow && load.Sleep(ctx, acceptPoll) {
		}
		err = s.awaitWork(ctx, before.at, func(since time.Time) (bool, error) {
			if s.crowd.Answered() == len(bodies) {
				return true, nil
			}
			return s.crowd.HasSuccessSince(since)
		})
		after, readErr = s.read(ctx)
		return errors.Join(err, readErr)
	})
	if err != nil {
		return err
	}
	if passed, err := s.crowd.HasSuccessSince(before.at); err == nil && !passed {
		before = began // all were accepted before the warm-up ended
	}
	answers := s.tally(s.crowd.Calls(), before.at, after.at)
	if err := s.checkCompleted("acceptance", &answers); err != nil {
		return err
	}
	rate := float64(answers.done) / after.at.Sub(before.at).Seconds()
	s.report.Add(report.Group{Title: "Accepted asynchronously per second, every proof verified", Unit: perSecond, Better: report.More}, s.label, rate)
	s.costs("accepted submission", before, after, answers.done, costAims{processor: 1.2, rate: 0.7 * float64(runtime.NumCPU()) * 1000 / s.bareCheck})
	s.progressf("%s: accepted %.0f a second", s.name, rate)
	return nil
}
