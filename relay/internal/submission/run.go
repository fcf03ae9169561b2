package submission

import (
	"context"
	"sync"
	"time"
)

const (
	// claimLimit is how many rows one claim takes up.
	claimLimit = 64
	// landedLimit is how many landed ones.
	landedLimit = 256
	// notifyInterval is the least time between two calls to the other processes.
	notifyInterval = 50 * time.Millisecond
	// slotReportTimeout bounds one word to the fleet about a slot, and slotReportRetry is the
	// pause before it is said again.
	slotReportTimeout = time.Second
	slotReportRetry   = 50 * time.Millisecond
	// stepTimeout ends a step that hangs, on a database that is gone without a
	// word for instance; whoever claims the row next repeats it.
	stepTimeout = 30 * time.Second
)

// Run works until ctx ends: it beats, takes up what is due, frees what dead
// processes held, follows the chain and writes outcomes. These run beside each
// other, so that a chain that hangs costs no lease and a database that hangs no
// look. When ctx ends nothing new is taken up, running steps end, and
// everything is handed over at once.
func (e *Engine) Run(ctx context.Context) {
	// The leases are kept, and outcomes written, until the last step has ended.
	support, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var loops, supporting sync.WaitGroup
	e.heartbeat(support)
	supporting.Go(func() { e.every(support, e.Timing.Lease/3, e.heartbeat) })
	supporting.Go(func() { e.every(support, e.Timing.Lease, e.auditLeases) })
	supporting.Go(func() { e.recorder.run(support) })
	loops.Go(func() { e.claimLoop(ctx) })
	loops.Go(func() { e.claimExecutions(ctx) })
	loops.Go(func() { e.pauseLoop(ctx) })
	loops.Go(func() { e.notifyOthers(ctx) })
	loops.Go(func() { e.reportTreeSlot(ctx) })
	loops.Go(func() { e.every(ctx, e.Timing.Sweep, e.freeDeadProcesses) })
	loops.Go(func() { e.tracker.run(ctx) })
	<-ctx.Done()
	e.Close()
	loops.Wait()
	e.steps.Wait()
	stop()
	supporting.Wait()
	e.handOver(context.WithoutCancel(ctx))
}

// Close ends the taking up of new submissions.
func (e *Engine) Close() { e.stop() }

// every calls f at each tick until ctx ends.
func (e *Engine) every(ctx context.Context, d time.Duration, f func(context.Context)) {
	tick := time.NewTicker(d)
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

// heartbeat keeps this process's leases.
func (e *Engine) heartbeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease/3)
	defer cancel()
	began := time.Now()
	lapsed, err := e.Store.Heartbeat(ctx, Worker{ID: e.Worker, PausedBy: e.paused.reason()}, e.Timing.Lease)
	if err != nil {
		if ctx.Err() == nil || e.leaseHealth.validFor(began, 0) {
			e.Log.WarnContext(ctx, "lease heartbeat failed", "error", err)
		}
		e.leaseHealth.failed()
		return
	}
	if e.leaseHealth.renewed(began, lapsed) && lapsed {
		e.Observer.Lease("lapsed", 1)
		e.Log.WarnContext(ctx, "lapsed leases renewed; other processes may have taken submissions over")
	}
}

// auditLeases compares what this process holds with what the database says. A lease
// that it does not know of, twice in a row, came from a write whose answer was
// lost: without the audit nobody would ever work on that row.
func (e *Engine) auditLeases(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	believed := e.tracker.leases()
	held, err := e.Store.Leases(ctx, e.Worker)
	if err != nil {
		e.Log.DebugContext(ctx, "lease audit failed", "error", err)
		return
	}
	has, strays := leaseSet(held), map[Lease]bool{}
	known := e.tracker.leases()
	for _, l := range held {
		switch {
		case known[l]:
		case !e.orphaned[l]:
			strays[l] = true
		default:
			if err := e.Store.Release(ctx, l, 0, ""); err == nil {
				e.Observer.Lease("stray", 1)
				e.Log.WarnContext(ctx, "orphaned lease released", "request_id", l.ID)
				e.ClaimSoon()
			}
		}
	}
	e.orphaned = strays
	for l := range believed {
		if !has[l] {
			e.tracker.dropLease(l)
		}
	}
}

// freeDeadProcesses frees what dead processes held. Whoever has just come back from a
// database that was away waits for the others to come back, too.
func (e *Engine) freeDeadProcesses(ctx context.Context) {
	if !e.leaseHealth.validFor(time.Now(), e.Timing.Lease) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	freed, err := e.Store.FreeDeadProcesses(ctx)
	if err != nil {
		e.Log.WarnContext(ctx, "looking for dead processes failed", "error", err)
		return
	}
	if freed > 0 {
		e.Observer.Lease("reaped", freed)
		e.Log.WarnContext(ctx, "leases of a dead process released", "submissions", freed)
		e.ClaimSoon()
		e.NotifyOthers()
	}
}

// notifyOthers tells other processes of work that this one has no place for.
func (e *Engine) notifyOthers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.othersNeeded:
		}
		call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
		if err := e.Store.NotifyDue(call); err != nil && ctx.Err() == nil {
			e.Log.DebugContext(ctx, "notifying other processes failed; they poll by themselves", "error", err)
		}
		cancel()
		if !sleep(ctx, notifyInterval) {
			return
		}
	}
}

// reportTreeSlot tells the fleet of the newest slot at which the tree changed.
func (e *Engine) reportTreeSlot(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.treeSlotChanged:
		}
		call, cancel := context.WithTimeout(ctx, slotReportTimeout)
		if err := e.Store.RecordTreeSlot(call, e.Pool.Address, e.highestTreeSlot.Load()); err != nil && ctx.Err() == nil {
			e.Log.DebugContext(ctx, "sharing the highest observed slot failed; retrying", "error", err)
			// A database that is back serves processes that start, too: they must not
			// judge roots before they can know what this one has seen.
			time.AfterFunc(slotReportRetry, func() { signal(e.treeSlotChanged) })
		}
		cancel()
	}
}

// claimLoop takes up what is due whenever it is nudged, and at each sweep.
func (e *Engine) claimLoop(ctx context.Context) {
	tick := time.NewTicker(e.Timing.Sweep)
	defer tick.Stop()
	for {
		swept := false
		select {
		case <-e.stopping.Done():
			return
		case <-e.claimSoon:
		case <-tick.C:
			swept = true
		}
		if e.paused.reason() == "" {
			for e.claimBatch(ctx) && ctx.Err() == nil {
			}
		} else if swept {
			// Some are looked at all the same, in turn: what does not wait for the same
			// reason, such as a dead process's transactions, must not wait with the rest.
			e.claimBatch(ctx)
		}
		if swept {
			for e.claimLanded(ctx) && ctx.Err() == nil {
			}
		}
	}
}

// claimBatch claims as much as there are places for, and while the queue is held one
// of what waits, as a probe, beside what may be on the chain; more says that
// there may be more to take.
func (e *Engine) claimBatch(ctx context.Context) (more bool) {
	claim := e.Store.Claim
	if e.paused.reason() != "" {
		claim = e.Store.Probe
	}
	// Most places stay free while the database answers, for what is accepted meanwhile.
	places := e.capacity.acquire(min(claimLimit, max(1, e.Concurrency/4)))
	if places == 0 {
		e.mayClaimMore.Store(true)
		return false
	}
	call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	claimed, err := claim(call, e.Worker, places)
	for range places - len(claimed) {
		e.capacity.release()
	}
	if err != nil {
		if ctx.Err() == nil {
			e.Log.WarnContext(ctx, "claiming due submissions failed", "error", err)
		}
		return false
	}
	e.mayClaimMore.Store(len(claimed) == places)
	if len(claimed) > 0 {
		e.Observer.Lease("claimed", len(claimed))
	}
	for _, c := range claimed {
		if len(c.Live)+len(c.Dead) == 0 && c.Tries == 0 && c.Hold == "" {
			e.Observer.Stage("queue", e.Now().Sub(c.CreatedAt))
		}
		e.start(ctx, c)
	}
	return len(claimed) == places
}

// claimLanded claims landed submissions that nobody watches.
func (e *Engine) claimLanded(ctx context.Context) (more bool) {
	call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	claimed, err := e.Store.ClaimLanded(call, e.Worker, landedLimit)
	if err != nil {
		if ctx.Err() == nil {
			e.Log.WarnContext(ctx, "claiming landed submissions failed", "error", err)
		}
		return false
	}
	for _, c := range claimed {
		e.tracker.adoptLanded(c)
	}
	return len(claimed) == landedLimit
}

// stepContext is the context of a step: a shutdown leaves it half a lease to finish.
func (e *Engine) stepContext(ctx context.Context) (context.Context, context.CancelFunc) {
	step, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	stop := context.AfterFunc(e.stopping, func() { time.AfterFunc(e.Timing.Lease/2, cancel) })
	return step, func() { stop(); cancel() }
}

// handOver gives everything back at once. The attempts live on: whoever takes
// a row settles them first.
func (e *Engine) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	n, err := e.Store.ReleaseAll(ctx, e.Worker)
	if err != nil {
		e.Log.WarnContext(ctx, "leases not released; they lapse by themselves", "error", err)
		return
	}
	e.Observer.Lease("handed_over", n)
	if n == 0 {
		return
	}
	e.Log.InfoContext(ctx, "submissions handed over", "submissions", n)
	if err := e.Store.NotifyDue(ctx); err != nil {
		e.Log.DebugContext(ctx, "notifying other processes failed; they poll by themselves", "error", err)
	}
}
