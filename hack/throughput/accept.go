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
	before, err := s.read(ctx)
	if err != nil {
		return err
	}
	after := before
	s.crowd.Calls()
	err = underLoad(ctx, func(ctx context.Context) {
		s.crowd.Flood(ctx, s.sizes.accept, 0, "respond-async", crowd.SourceOf(bodies))
	}, func() (err error) {
		for s.crowd.Answered() < len(bodies) && time.Since(before.at) < s.sizes.acceptWindow && load.Sleep(ctx, acceptPoll) {
		}
		err = s.awaitWork(ctx, before.at, s.crowd.HasSuccessSince)
		var readErr error
		after, readErr = s.read(ctx)
		return errors.Join(err, readErr)
	})
	if err != nil {
		return err
	}
	s.countOthers(before, after)
	answers := s.tally(s.crowd.Calls(), before.at, after.at)
	if err := s.checkCompleted("acceptance", &answers); err != nil {
		return err
	}
	rate := float64(answers.done) / after.at.Sub(before.at).Seconds()
	s.report.Add(report.Group{Title: "Accepted asynchronously per second, every proof verified", Unit: perSecond, Better: report.More}, s.label, rate)
	s.costs("accepted submission", before, after, answers.done, costAims{processor: 1.2, rate: 0.7 * float64(runtime.NumCPU())})
	s.progressf("%s: accepted %.0f a second", s.name, rate)
	return nil
}
