package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
)

// carry measures the rate of confirmed submissions with as many clients as the relays can serve.
func (s *benchRun) carry(ctx context.Context) error {
	var before, after reading
	err := underLoad(ctx, func(ctx context.Context) {
		s.crowd.Flood(ctx, s.sizes.carry, s.sizes.warm/2, "", s.crowd.Stream(ctx))
	}, func() (err error) {
		// As many are confirmed as are sent only after some answers for each client. Otherwise the cost
		// of sends that are confirmed after the window would count.
		s.warmUp(ctx, 3*s.sizes.carry)
		finishProfiles := s.profiles(ctx, "carry", s.window)
		before, after, err = s.measureWindow(ctx, s.window, s.wholeTurns(s.sizes.carry))
		return errors.Join(err, finishProfiles())
	})
	if err != nil {
		return err
	}
	answers := s.tally(s.crowd.Calls(), before.at, after.at)
	if err := s.checkCompleted("the confirmation rate", &answers); err != nil {
		return err
	}
	rate := float64(answers.done) / after.at.Sub(before.at).Seconds()
	s.report.Add(report.Group{Title: "Confirmed submissions per second, long root history", Unit: perSecond, Better: report.More, Aim: 300}, s.label, rate)
	s.costs("confirmed submission", before, after, answers.done, costAims{processor: 2.2, calls: 2.2, statements: 2})
	if err := s.breakdown(ctx, before, after, answers.done); err != nil {
		return err
	}
	s.progressf("%s: completed %.0f a second, after p50 %.1f s", s.name, rate, gauge.Percentile(answers.took, 50).Seconds())
	return nil
}

// costAims are what a submission may take: bare checks of processor time, RPC calls and SQL statements.
// rate is how many should be done in the time of a bare check, if relays and Postgres had all cores.
type costAims struct{ processor, calls, statements, rate float64 }

// calls reports the RPC calls per submission or swap.
func (s *benchRun) calls(each string, before, after reading, done int, aim float64) {
	var total uint64
	for method, n := range after.calls {
		total += n - before.calls[method]
	}
	s.report.Add(report.Group{Title: "RPC calls per " + each, Better: report.Less, Aim: aim}, s.label, float64(total)/float64(done))
	s.progressf("%s: RPC calls per %s: %s", s.name, each, perEach(before.calls, after.calls, done))
}

// costs reports the processor time, RPC calls and SQL statements per submission or swap.
func (s *benchRun) costs(each string, before, after reading, done int, aims costAims) {
	took := after.processor.Since(before.processor)
	share := func(d time.Duration) float64 { return ms(d) / float64(done) }
	s.report.Add(report.Group{Title: "CPU used by other programs, percent, while " + each + "s are measured", Better: report.Less}, s.label, 100*took.Others())
	group := report.Group{Title: "Processor time per " + each + ", relays", Unit: "ms", Better: report.Less}
	s.report.Add(group, s.label, share(took.Relays))
	group.Title = "Processor time per " + each + ", Postgres"
	s.report.Add(group, s.label, share(took.Database))
	s.report.Add(report.Group{Title: "Bare checks of processor time per " + each, Better: report.Less, Aim: aims.processor}, s.label,
		share(took.Relays+took.Database)/s.bareCheck())
	group.Title = "Processor time per " + each + ", local chain and clients"
	s.report.Add(group, s.label, share(took.Clients))
	rate := float64(runtime.NumCPU()) * 1000 / share(max(took.Relays+took.Database, gauge.Tick))
	title := fmt.Sprintf("Estimated rate if relays and Postgres had all %d cores, %ss", runtime.NumCPU(), each)
	s.report.Add(report.Group{Title: title, Unit: perSecond, Better: report.More}, s.label, rate)
	s.report.Add(report.Group{Title: title + " in the time of a bare check", Better: report.More, Aim: aims.rate}, s.label, rate*s.bareCheck()/1000)
	s.calls(each, before, after, done, aims.calls)
	s.progressf("%s: SQL statements per %s: %s", s.name, each, perEach(before.statements, after.statements, done))
	var statements int64
	for kind, n := range after.statements {
		statements += n - before.statements[kind]
	}
	s.report.Add(report.Group{Title: "SQL statements per " + each, Better: report.Less, Aim: aims.statements}, s.label, float64(statements)/float64(done))
}
