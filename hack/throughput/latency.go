package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/relay/contract"
)

const perSecond = "/s"

// ms returns a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// steady sends requests at a rate for so many windows, after a second of warm-up. It returns the
// counters when it began and ended to count, and the answers in between.
func (s *benchRun) steady(ctx context.Context, what string, rate float64, windows int) (before, after reading, answered tally, err error) {
	warm := int(rate) + 1
	bodies, err := s.crowd.Prepare(ctx, warm+int(float64(windows)*rate*s.window.Seconds()))
	if err != nil {
		return before, after, answered, err
	}
	s.crowd.Steady(ctx, rate, bodies[:warm])
	s.crowd.Calls()
	s.stand.Sends()
	if before, err = s.read(ctx); err != nil {
		return before, after, answered, err
	}
	s.crowd.Steady(ctx, rate, bodies[warm:])
	if after, err = s.read(ctx); err != nil {
		return before, after, answered, err
	}
	s.countOthers(before, after)
	answered = s.tally(s.crowd.Calls(), before.at, after.at)
	err = s.checkCompleted(what, &answered)
	return before, after, answered, err
}

// latencyAndCalls measures the time to the first send, and then the calls at twice the rate: few submissions
// share a call there.
func (s *benchRun) latencyAndCalls(ctx context.Context) error {
	if err := s.latency(ctx); err != nil {
		return err
	}
	rate := 2 * s.sizes.rate
	before, after, answered, err := s.steady(ctx, "the calls", rate, 1)
	if err != nil {
		return err
	}
	s.calls(fmt.Sprintf("submission at %.0f a second", rate), before, after, answered.done, 2.2)
	return nil
}

// latency measures the time from acceptance to the first send at a steady rate.
func (s *benchRun) latency(ctx context.Context) error {
	finishProfiles := s.profiles(ctx, "latency", s.window)
	before, after, answered, err := s.steady(ctx, "the latency", s.sizes.rate, 1)
	if err := errors.Join(err, finishProfiles()); err != nil {
		return err
	}
	s.costs("steady submission", before, after, answered.done, costAims{})
	sends := s.stand.Sends()
	accepted, err := s.stand.Attempts(ctx, before.at, after.at)
	if err != nil {
		return err
	}
	var took []time.Duration
	for signature, at := range accepted {
		if first, ok := sends[signature]; ok {
			took = append(took, first.Sub(at))
		}
	}
	slices.Sort(took)
	if len(took) < answered.done {
		return fmt.Errorf("the first send of %d submissions was observed, expected %d", len(took), answered.done)
	}
	for _, p := range []struct {
		percentile float64
		aim        float64
	}{{50, 3}, {95, 8}, {99, 0}} {
		title, after := fmt.Sprintf("Accepted to first send, p%.0f, at %.0f submissions a second", p.percentile, s.sizes.rate), ms(gauge.Percentile(took, p.percentile))
		s.report.Add(report.Group{Title: title, Unit: "ms", Better: report.Less}, s.label, after)
		s.report.Add(report.Group{Title: title + ", in bare checks", Better: report.Less, Aim: p.aim}, s.label, after/s.bareCheck())
	}
	if err := s.simulationTime(ctx); err != nil {
		return err
	}
	s.report.Add(report.Group{Title: fmt.Sprintf("Request to confirmed outcome, p50, at %.0f submissions a second", s.sizes.rate), Unit: "ms", Better: report.Less}, s.label, ms(gauge.Percentile(answered.took, 50)))
	s.progressf("%s: first send after p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", s.name, ms(gauge.Percentile(took, 50)), ms(gauge.Percentile(took, 95)), ms(gauge.Percentile(took, 99)))
	return nil
}

// simulationTime reports how long the endpoint took to simulate, which is a part of the time to the
// first send that no relay can shorten.
func (s *benchRun) simulationTime(ctx context.Context) error {
	pages, err := s.stand.Metrics(ctx)
	if err != nil {
		return err
	}
	m, name, method := gauge.ReadMetrics(pages), contract.MetricRPCDuration.Name, `method="simulateTransaction"`
	s.report.Add(report.Group{Title: fmt.Sprintf("Of that the endpoint's simulation, mean, at %.0f submissions a second", s.sizes.rate), Unit: "ms", Better: report.Less}, s.label,
		1000*m.Sum(name+"_sum", method)/max(1, m.Sum(name+"_count", method)))
	return nil
}
