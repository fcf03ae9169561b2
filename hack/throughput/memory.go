package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/crowd"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/throughput/report"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// memoryWarm is the number of submissions that land before the first reading of memory.
	memoryWarm    = 100
	memoryTimeout = 5 * time.Minute
	memoryPoll    = 100 * time.Millisecond
	memoryGCs     = 3
)

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
		s.crowd.Flood(ctx, s.sizes.flight, 3*s.sizes.warm, "wait=60", crowd.SourceOf(bodies[memoryWarm+s.sizes.flight:]))
	}, func() (err error) {
		second, err = s.measureMemory(ctx, 2*flight)
		return err
	})
	if err != nil {
		return err
	}
	heap := report.Group{Title: "Live heap and stacks of a submission in flight", Unit: "kB", Better: report.Less, Aim: 6}
	s.report.Add(heap, s.label, (first.heap-idle.heap)/flight/1000)
	heap.Title, heap.Aim = "The same while its client waits", 20
	s.report.Add(heap, s.label, (second.heap-first.heap)/flight/1000)
	total := report.Group{Title: "Memory of a relay process (resident), idle, after some work", Unit: "MB", Better: report.Less, Aim: 42}
	s.report.Add(total, s.label, idle.resident/1e6)
	total.Title = "Of that its own: without the pages of files, such as the binary, which processes share"
	s.report.Add(total, s.label, idle.own/1e6)
	total.Title, total.Aim = "Memory of a relay process (resident)", 0
	s.report.Add(total, fmt.Sprintf("%d in flight", s.sizes.flight), first.resident/1e6)
	s.report.Add(total, fmt.Sprintf("%d in flight, half with waiting clients", 2*s.sizes.flight), second.resident/1e6)
	s.progressf("%s: %.1f kB of heap for a submission in flight", s.name, (first.heap-idle.heap)/flight/1000)
	return nil
}

// usage is a process's live heap and stacks, its resident memory, and the part of that which is its own.
type usage struct{ heap, resident, own float64 }

// measureMemory waits until so many submissions are in flight, and then for some garbage
// collections. It returns the smallest sum of live heap and stacks after them.
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
		heap := m.Sum("go_gc_heap_live_bytes") + m.Sum("go_memstats_stack_inuse_bytes")
		if reached && collections > began && (u.heap == 0 || heap < u.heap) {
			u = usage{heap: heap, resident: m.Sum("process_resident_memory_bytes")}
			if u.own, err = gauge.OwnMemory(s.stand.Relays[0].PID()); err != nil {
				return u, err
			}
		}
		if reached && collections >= began+memoryGCs {
			return u, nil
		}
		load.Sleep(ctx, memoryPoll)
	}
	return u, context.Cause(ctx)
}
