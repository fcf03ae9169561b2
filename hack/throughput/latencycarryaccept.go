package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/crowd"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/relay/contract"
)

// sizes are the sizes of the parts' loads.
type sizes struct {
	// rate is the submissions per second of the latency measurement.
	rate float64
	// carry, accept and provingClients are numbers of concurrent clients.
	carry, accept, provingClients int
	// swapRate is the swaps per second at a steady rate, swaps the number of concurrent
	// clients at full speed.
	swapRate float64
	swaps    int
	// acceptRequests is the number of requests for warm-up and window, all against one root.
	acceptRequests int
	// flight is the number of submissions in flight when memory is read.
	flight int
	warm   time.Duration
	// acceptWindow is short, so that the root history has room for all accepted submissions.
	acceptWindow time.Duration
}

// full returns the benchmark's load: enough clients for 300 submissions a second when each
// waits two seconds, and enough requests for a window of 8 s and its warm-up.
func full() sizes {
	return sizes{
		rate: 50, carry: 600, accept: 64, provingClients: 96, swapRate: 5, swaps: 400, acceptRequests: 4900,
		flight: 1000, warm: 3 * time.Second, acceptWindow: 5 * time.Second,
	}
}

const (
	// memoryWarm is the number of submissions that land before the first reading of memory.
	memoryWarm    = 100
	memoryTimeout = 5 * time.Minute
	memoryPoll    = 100 * time.Millisecond
	memoryGCs     = 3
)

const (
	perSecond   = "/s"
	warmTimeout = time.Minute
	warmPoll    = 50 * time.Millisecond
)

// ms returns a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// latency measures the time from acceptance to the first send at a steady rate.
func (s *benchRun) latency(ctx context.Context) error {
	warm := int(s.sizes.rate) // the requests of the first second
	bodies, err := s.crowd.Prepare(ctx, warm+int(s.sizes.rate*s.window.Seconds()))
	if err != nil {
		return err
	}
	s.crowd.Steady(ctx, s.sizes.rate, bodies[:warm])
	s.crowd.Calls()
	s.stand.Sends()
	from := time.Now()
	s.crowd.Steady(ctx, s.sizes.rate, bodies[warm:])
	to := time.Now()
	answered := s.tally(s.crowd.Calls(), from, to)
	if err := s.checkCompleted("the latency", &answered); err != nil {
		return err
	}
	sends := s.stand.Sends()
	accepted, err := s.stand.Attempts(ctx, from, to)
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
	}{{50, 0}, {95, 15}, {99, 0}} {
		s.report.Add(report.Group{
			Title: fmt.Sprintf("Accepted to first send, p%.0f, at %.0f submissions a second", p.percentile, s.sizes.rate), Unit: "ms", Better: report.Less, Aim: p.aim,
		}, s.label, ms(gauge.Percentile(took, p.percentile)))
	}
	s.report.Add(report.Group{Title: fmt.Sprintf("Request to confirmed outcome, p50, at %.0f submissions a second", s.sizes.rate), Unit: "ms", Better: report.Less}, s.label, ms(gauge.Percentile(answered.took, 50)))
	s.progressf("%s: first send after p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", s.name, ms(gauge.Percentile(took, 50)), ms(gauge.Percentile(took, 95)), ms(gauge.Percentile(took, 99)))
	return nil
}

// warmUp waits for the warm-up time and until so many requests have been answered: on a
// busy machine the first answers take longer.
func (s *benchRun) warmUp(ctx context.Context, answers int) {
	load.Sleep(ctx, s.sizes.warm)
	for began := time.Now(); s.crowd.Answered() < answers && time.Since(began) < warmTimeout && ctx.Err() == nil; {
		load.Sleep(ctx, warmPoll)
	}
}

// underLoad runs clients during a measurement, and stops them after it.
func underLoad(ctx context.Context, clients func(context.Context), measure func() error) error {
	loading, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { clients(loading) })
	err := measure()
	stop()
	running.Wait()
	return err
}

// carry measures the rate of confirmed submissions with as many clients as the relays
// can serve.
func (s *benchRun) carry(ctx context.Context) error {
	var before, after reading
	err := underLoad(ctx, func(ctx context.Context) {
		s.crowd.Flood(ctx, s.sizes.carry, s.sizes.warm/2, "", s.crowd.Stream(ctx))
	}, func() (err error) {
		s.warmUp(ctx, s.sizes.carry)
		finishProfiles := s.profiles(ctx, s.window)
		before, after, err = s.measureWindow(ctx, s.window, s.crowd.HasSuccessSince)
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
	s.costs("confirmed submission", before, after, answers.done)
	s.progressf("%s: completed %.0f a second, after p50 %.1f s", s.name, rate, gauge.Percentile(answers.took, 50).Seconds())
	return nil
}

// costs reports the processor time, RPC calls and SQL statements per submission or swap.
func (s *benchRun) costs(each string, before, after reading, done int) {
	took := after.processor.Since(before.processor)
	share := func(d time.Duration) float64 { return ms(d) / float64(done) }
	s.report.Add(report.Group{Title: "CPU used by other programs, percent, while " + each + "s are measured", Better: report.Less}, s.label, 100*took.Others())
	group := report.Group{Title: "Processor time per " + each + ", relays", Unit: "ms", Better: report.Less}
	s.report.Add(group, s.label, share(took.Relays))
	group.Title = "Processor time per " + each + ", Postgres"
	s.report.Add(group, s.label, share(took.Database))
	group.Title = "Processor time per " + each + ", local chain and clients"
	s.report.Add(group, s.label, share(took.Clients))
	s.report.Add(report.Group{Title: fmt.Sprintf("Estimated rate with all %d cores, from processor time, %ss", runtime.NumCPU(), each), Unit: perSecond, Better: report.More}, s.label,
		float64(runtime.NumCPU())*float64(done)/took.Own().Seconds())
	s.report.Add(report.Group{Title: "RPC calls per " + each, Better: report.Less}, s.label, float64(after.calls-before.calls)/float64(done))
	s.report.Add(report.Group{Title: "SQL statements per " + each, Better: report.Less}, s.label, float64(after.statements-before.statements)/float64(done))
}

// accept measures asynchronous acceptance, while the relays process the accepted
// submissions.
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
	s.report.Add(report.Group{Title: "Accepted asynchronously per second, every proof verified", Unit: perSecond, Better: report.More}, s.label, rate)
	s.progressf("%s: accepted %.0f a second", s.name, rate)
	return nil
}

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
	s.report.Add(report.Group{Title: fmt.Sprintf("Confirmed submissions per second, root history %d", programRootHistory), Unit: perSecond, Better: report.More}, s.label, rate)
	s.report.Add(report.Group{Title: fmt.Sprintf("Requests refused (prove again or retry later), percent, root history %d", programRootHistory), Better: report.Less}, s.label, 100*float64(refused)/float64(refused+answers.done))
	s.progressf("%s: completed %.0f a second; %s", s.name, rate, answers.refusals())
	return nil
}

// memory measures the relay's memory per submission in flight. The chain drops transactions,
// so that nothing lands, and the heap is read after garbage collections.
func (s *benchRun) memory(ctx context.Context) error {
	flight := float64(s.sizes.flight)
	bodies, err := s.crowd.Prepare(ctx, memoryWarm+2*s.sizes.flight)
	if err != nil {
		return err
	}
	s.crowd.Steady(ctx, s.sizes.rate, bodies[:memoryWarm])
	idle, err := s.measureMemory(ctx, 0)
	if err != nil {
		return err
	}
	if err := s.stand.DropSends(); err != nil {
		return err
	}
	s.crowd.Flood(ctx, s.sizes.accept, s.sizes.warm/6, "respond-async", crowd.SourceOf(bodies[memoryWarm:memoryWarm+s.sizes.flight]))
	first, err := s.measureMemory(ctx, flight)
	if err != nil {
		return err
	}
	var second usage
	err = underLoad(ctx, func(ctx context.Context) {
		s.crowd.Flood(ctx, s.sizes.flight, s.sizes.warm, "wait=60", crowd.SourceOf(bodies[memoryWarm+s.sizes.flight:]))
	}, func() (err error) {
		second, err = s.measureMemory(ctx, 2*flight)
		return err
	})
	if err != nil {
		return err
	}
	heap := report.Group{Title: "Live heap and stacks of a submission in flight", Unit: "kB", Better: report.Less}
	s.report.Add(heap, "accepted asynchronously", (first.heap-idle.heap)/flight/1000)
	s.report.Add(heap, "its client waits", (second.heap-first.heap)/flight/1000)
	total := report.Group{Title: "Memory of a relay process (resident)", Unit: "MB", Better: report.Less}
	s.report.Add(total, "idle, after some work", idle.resident/1e6)
	s.report.Add(total, fmt.Sprintf("%d in flight", s.sizes.flight), first.resident/1e6)
	s.report.Add(total, fmt.Sprintf("%d in flight, half with waiting clients", 2*s.sizes.flight), second.resident/1e6)
	s.progressf("%s: %.1f kB of heap for a submission in flight", s.name, (first.heap-idle.heap)/flight/1000)
	return nil
}

type usage struct{ heap, resident float64 }

// measureMemory waits until so many submissions are in flight, and then for some garbage
// collections. It returns the smallest live heap after them, computed from the heap size at
// which the next collection starts.
func (s *benchRun) measureMemory(ctx context.Context, flight float64) (u usage, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, memoryTimeout, errors.New("the relay did not reach the number of submissions in flight in time"))
	defer cancel()
	reached, began := false, 0.0
	for ctx.Err() == nil {
		pages, err := s.stand.Metrics(ctx)
		if err != nil {
			return u, err
		}
		m := gauge.ReadMetrics(pages)
		collections := m.Sum("go_gc_duration_seconds_count")
		if !reached && m.Sum(contract.MetricInFlight.Name) == flight {
			reached, began = true, collections
		}
		live := m.Sum("go_memstats_next_gc_bytes") * 100 / (100 + m.Sum("go_gc_gogc_percent"))
		if reached && collections > began && (u.heap == 0 || live < u.heap) {
			u = usage{heap: live, resident: m.Sum("process_resident_memory_bytes")}
		}
		if reached && collections >= began+memoryGCs {
			return u, nil
		}
		load.Sleep(ctx, memoryPoll)
	}
	return u, context.Cause(ctx)
}
