package main

import (
	"context"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/load"
)

// sizes are the sizes of the parts' loads.
type sizes struct {
	// rate is the submissions per second of the latency measurement.
	rate float64
	// carry, accept and provingClients are numbers of concurrent clients.
	carry, accept, provingClients int
	// swapRate is the swaps per second at a steady rate. swaps is the number of concurrent
	// clients at full speed.
	swapRate float64
	swaps    int
	// clients are the numbers of concurrent clients of the part of that name.
	clients []int
	// saturating is as few clients as reach the peak with the relay's default concurrency.
	saturating int
	// acceptRequests is the number of requests for warm-up and window, all against one root, and fewer than
	// a relay's queue takes.
	acceptRequests int
	// forgedRequests is the number of requests of each of three floods, all against one root.
	forgedRequests int
	// readRate is the reads of each kind a second during the overload.
	readRate float64
	// flight is the number of submissions in flight when memory is read.
	flight int
	// leaves is the number of leaves in the list.
	leaves uint64
	warm   time.Duration
	// acceptWindow is short, so that the root history has room for all accepted submissions.
	acceptWindow time.Duration
}

// full returns the benchmark's load: enough clients for 300 submissions a second when each
// waits two seconds, and enough requests for a window of 8 s and its warm-up.
func full() sizes {
	return sizes{
		rate: 50, carry: 600, accept: 64, provingClients: 96, swapRate: 5, swaps: 400, acceptRequests: 4300, clients: []int{1, 8, 64}, saturating: 320, forgedRequests: 1536, readRate: 25,
		flight: 1000, leaves: 1_000_000, warm: 3 * time.Second, acceptWindow: 5 * time.Second,
	}
}

const (
	warmTimeout = time.Minute
	warmPoll    = 50 * time.Millisecond
)

// warmUp waits for the warm-up time and until so many requests have been answered: on a
// busy machine the first answers take longer. The report notes if that takes more than warmTimeout.
func (s *benchRun) warmUp(ctx context.Context, answers int) {
	load.Sleep(ctx, s.sizes.warm)
	for began := time.Now(); s.crowd.Answered() < answers && time.Since(began) < warmTimeout && ctx.Err() == nil; {
		load.Sleep(ctx, warmPoll)
	}
	if n := s.crowd.Answered(); n < answers {
		s.report.Note("%s began after %d answers, and not after %d, because they took more than %s (round %d).", s.name, n, answers, warmTimeout, s.round+1)
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
