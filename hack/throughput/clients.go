package main

import (
	"context"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
)

// clients measures rate and latency of submissions that are waited for, and of asynchronous acceptance, with
// few clients and with many. The relay carries what it accepts.
func (s *benchRun) clients(ctx context.Context) error {
	for _, way := range []struct {
		title, each, prefer string
		window              time.Duration
	}{
		{"Confirmed", "request to confirmed outcome", "", s.window},
		{"Accepted asynchronously", "request to acceptance", "respond-async", s.sizes.acceptWindow / 2},
	} {
		for _, n := range s.sizes.clients {
			var before, after reading
			err := underLoad(ctx, func(ctx context.Context) {
				s.crowd.Flood(ctx, n, s.sizes.warm/6, way.prefer, s.crowd.Stream(ctx))
			}, func() (err error) {
				load.Sleep(ctx, s.sizes.warm/3)
				before, after, err = s.measureWindow(ctx, way.window, s.crowd.HasSuccessSince)
				return err
			})
			if err != nil {
				return err
			}
			answers := s.tally(s.crowd.Calls(), before.at, after.at)
			if err := s.checkCompleted("few clients", &answers); err != nil {
				return err
			}
			label := fmt.Sprintf("%d at once", n)
			s.report.Add(report.Group{Table: "Clients", Title: way.title + " per second", Unit: perSecond, Better: report.More}, label, float64(answers.done)/after.at.Sub(before.at).Seconds())
			s.report.Add(report.Group{Table: "Clients", Title: way.title + ", " + way.each + ", p50", Unit: "ms", Better: report.Less}, label, ms(gauge.Percentile(answers.took, 50)))
		}
	}
	return nil
}
