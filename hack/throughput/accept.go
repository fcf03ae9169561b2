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

// accept measures asynchronous acceptance, while the relays process the accepted submissions.
func (s *benchRun) accept(ctx context.Context) error {
	bodies, err := s.crowd.Prepare(ctx, s.sizes.acceptRequests)
	if err != nil {
		return err
	}
	s.crowd.Calls()
	began := time.Now()
	from, to := began, began
	err = underLoad(ctx, func(ctx context.Context) {
		s.crowd.Flood(ctx, s.sizes.accept, s.sizes.warm/6, "respond-async", crowd.SourceOf(bodies))
		to = time.Now()
	}, func() error {
		load.Sleep(ctx, s.sizes.warm/3)
		before, err := s.read(ctx)
		from = before.at
		load.Sleep(ctx, s.sizes.acceptWindow)
		return errors.Join(err, s.awaitWork(ctx, from, func(since time.Time) (bool, error) {
			if s.crowd.Answered() == len(bodies) {
				return true, nil
			}
			return s.crowd.HasSuccessSince(since)
		}))
	})
	if err != nil {
		return err
	}
	if passed, err := s.crowd.HasSuccessSince(from); err == nil && !passed {
		from = began // all were accepted before the warm-up ended
	}
	answers := s.tally(s.crowd.Calls(), from, to)
	if err := s.checkCompleted("acceptance", &answers); err != nil {
		return err
	}
	rate := float64(answers.done) / to.Sub(from).Seconds()
	s.report.Add(report.Group{Title: "Accepted asynchronously per second, every proof verified", Unit: perSecond, Better: report.More, Aim: 0.7 * float64(runtime.NumCPU()) * 1000 / s.bareCheck}, s.label, rate)
	s.progressf("%s: accepted %.0f a second", s.name, rate)
	return nil
}
