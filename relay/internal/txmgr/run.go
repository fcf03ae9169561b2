package txmgr

import (
	"context"
	"sync"
	"time"
)

// Run works until ctx ends: it sends heartbeats, claims due jobs, frees leases of dead
// processes, polls the chain and writes outcomes. Each of these has its own loop, so that leases
// are renewed while the chain hangs, and polls go on while the database hangs. When ctx ends, Run
// claims nothing new, waits for running steps, and then releases all leases in one statement.
func (m *Manager) Run(ctx context.Context) {
	// The supporting loops renew the leases and write outcomes until the last step has ended.
	support, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var loops, supporting sync.WaitGroup
	m.heartbeat(support)
	supporting.Go(func() { m.repeat(support, m.Timing.Lease/3, m.heartbeat) })
	supporting.Go(func() { m.repeat(support, m.Timing.Lease, m.auditLeases) })
	supporting.Go(func() { m.recorder.run(support) })
	for _, l := range m.queues {
		loops.Go(func() { m.claimLoop(ctx, l) })
	}
	loops.Go(func() { m.pauseLoop(ctx) })
	loops.Go(func() { m.notifyLoop(ctx) })
	loops.Go(func() { m.repeat(ctx, m.Timing.Sweep, m.freeDeadProcesses) })
	loops.Go(func() { m.tracker.run(ctx) })
	<-ctx.Done()
	m.Close()
	loops.Wait()
	m.steps.Wait()
	stop()
	supporting.Wait()
	m.handOver(context.WithoutCancel(ctx))
}

// Close stops the claiming of new jobs.
func (m *Manager) Close() { m.stop() }

// repeat calls f once per interval until ctx ends.
func (m *Manager) repeat(ctx context.Context, interval time.Duration, f func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f(ctx)
		}
	}
}

// sleep waits for d; it returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
