package submission

import (
	"context"
	"sync"
	"time"
)

const (
	// claimBatch is how many rows one claim takes up.
	claimBatch = 64
	// watchBatch is how many landed ones.
	watchBatch = 256
	// wakeEvery is the least time between two calls to the other processes.
	wakeEvery = 50 * time.Millisecond
	// sightPatience bounds one word to the fleet about a slot, and sightAgain is the
	// pause before it is said again.
	sightPatience = time.Second
	sightAgain    = 50 * time.Millisecond
	// stepPatience ends a step that hangs, on a database that is gone without a
	// word for instance; whoever claims the row next repeats it.
	stepPatience = 30 * time.Second
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
	e.beat(support)
	supporting.Go(func() { e.every(support, e.Timing.Lease/3, e.beat) })
	supporting.Go(func() { e.every(support, e.Timing.Lease, e.audit) })
	supporting.Go(func() { e.recorder.run(support) })
	loops.Go(func() { e.claim(ctx) })
	loops.Go(func() { e.claimSettlements(ctx) })
	loops.Go(func() { e.watch(ctx) })
	loops.Go(func() { e.wake(ctx) })
	loops.Go(func() { e.see(ctx) })
	loops.Go(func() { e.every(ctx, e.Timing.Sweep, e.reap) })
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

// beat keeps this process's leases.
func (e *Engine) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease/3)
	defer cancel()
	began := time.Now()
	lapsed, err := e.Store.Beat(ctx, Worker{ID: e.Worker, Hold: e.hold.reason()}, e.Timing.Lease)
	if err != nil {
		if ctx.Err() == nil || e.alive.lasted(began, 0) {
			e.Log.WarnContext(ctx, "Could not keep leases", "error", err)
		}
		e.alive.missed()
		return
	}
	if e.alive.beat(began, lapsed) && lapsed {
		e.Observer.Lease("lapsed", 1)
		e.Log.WarnContext(ctx, "Kept leases that had lapsed; other processes may have taken submissions over")
	}
}

// audit compares what this process holds with what the database says. A lease
// that it does not know of, twice in a row, came from a write whose answer was
// lost: without the audit nobody would ever work on that row.
func (e *Engine) audit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	believed := e.tracker.leases()
	held, err := e.Store.Held(ctx, e.Worker)
	if err != nil {
		e.Log.DebugContext(ctx, "Could not compare leases", "error", err)
		return
	}
	has, strays := leaseSet(held), map[Lease]bool{}
	known := e.tracker.leases()
	for _, l := range held {
		switch {
		case known[l]:
		case !e.strays[l]:
			strays[l] = true
		default:
			if err := e.Store.Release(ctx, l, 0, ""); err == nil {
				e.Observer.Lease("stray", 1)
				e.Log.WarnContext(ctx, "Gave back a submission that nothing here worked on", "request_id", l.ID)
				e.Nudge()
			}
		}
	}
	e.strays = strays
	for l := range believed {
		if !has[l] {
			e.tracker.lose(l)
		}
	}
}

// reap frees what dead processes held. Whoever has just come back from a
// database that was away waits for the others to come back, too.
func (e *Engine) reap(ctx context.Context) {
	if !e.alive.lasted(time.Now(), e.Timing.Lease) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	freed, err := e.Store.Reap(ctx)
	if err != nil {
		e.Log.WarnContext(ctx, "Could not look for dead workers", "error", err)
		return
	}
	if freed > 0 {
		e.Observer.Lease("reaped", freed)
		e.Log.WarnContext(ctx, "Freed what a dead worker held", "submissions", freed)
		e.Nudge()
		e.Overflow()
	}
}

// wake tells other processes of work that this one has no place for.
func (e *Engine) wake(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.waking:
		}
		call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
		if err := e.Store.Wake(call); err != nil && ctx.Err() == nil {
			e.Log.DebugContext(ctx, "Could not wake other processes; they look by themselves", "error", err)
		}
		cancel()
		if !pause(ctx, wakeEvery) {
			return
		}
	}
}

// see tells the fleet of the newest slot at which the tree changed.
func (e *Engine) see(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.seeing:
		}
		call, cancel := context.WithTimeout(ctx, sightPatience)
		if err := e.Store.Saw(call, e.Pool.Address, e.seen.Load()); err != nil && ctx.Err() == nil {
			e.Log.DebugContext(ctx, "Could not tell the fleet of a slot, trying again", "error", err)
			// A database that is back serves processes that start, too: they must not
			// judge roots before they can know what this one has seen.
			time.AfterFunc(sightAgain, func() { ring(e.seeing) })
		}
		cancel()
	}
}

// claim takes up what is due whenever it is nudged, and at each sweep.
func (e *Engine) claim(ctx context.Context) {
	tick := time.NewTicker(e.Timing.Sweep)
	defer tick.Stop()
	for {
		swept := false
		select {
		case <-e.stopping.Done():
			return
		case <-e.nudged:
		case <-tick.C:
			swept = true
		}
		if e.hold.reason() == "" {
			for e.take(ctx) && ctx.Err() == nil {
			}
		} else if swept {
			// Some are looked at all the same, in turn: what does not wait for the same
			// reason, such as a dead process's transactions, must not wait with the rest.
			e.take(ctx)
		}
		if swept {
			for e.takeLanded(ctx) && ctx.Err() == nil {
			}
		}
	}
}

// take claims as much as there are places for, and while the queue is held one
// of what waits, as a probe, beside what may be on the chain; more says that
// there may be more to take.
func (e *Engine) take(ctx context.Context) (more bool) {
	claim := e.Store.Claim
	if e.hold.reason() != "" {
		claim = e.Store.Probe
	}
	// Most places stay free while the database answers, for what is accepted meanwhile.
	places := e.slots.take(min(claimBatch, max(1, e.Concurrency/4)))
	if places == 0 {
		e.more.Store(true)
		return false
	}
	call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	claimed, err := claim(call, e.Worker, places)
	for range places - len(claimed) {
		e.slots.give()
	}
	if err != nil {
		if ctx.Err() == nil {
			e.Log.WarnContext(ctx, "Could not claim due submissions", "error", err)
		}
		return false
	}
	e.more.Store(len(claimed) == places)
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

// takeLanded claims landed submissions that nobody watches.
func (e *Engine) takeLanded(ctx context.Context) (more bool) {
	call, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	claimed, err := e.Store.ClaimLanded(call, e.Worker, watchBatch)
	if err != nil {
		if ctx.Err() == nil {
			e.Log.WarnContext(ctx, "Could not claim landed submissions", "error", err)
		}
		return false
	}
	for _, c := range claimed {
		e.tracker.watch(c)
	}
	return len(claimed) == watchBatch
}

// unhurried is the context of a step: a shutdown leaves it half a lease to finish.
func (e *Engine) unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	step, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepPatience)
	stop := context.AfterFunc(e.stopping, func() { time.AfterFunc(e.Timing.Lease/2, cancel) })
	return step, func() { stop(); cancel() }
}

// handOver gives everything back at once. The attempts live on: whoever takes
// a row settles them first.
func (e *Engine) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	n, err := e.Store.Retire(ctx, e.Worker)
	if err != nil {
		e.Log.WarnContext(ctx, "Left leases to lapse", "error", err)
		return
	}
	e.Observer.Lease("handed_over", n)
	if n == 0 {
		return
	}
	e.Log.InfoContext(ctx, "Handed submissions over", "submissions", n)
	if err := e.Store.Wake(ctx); err != nil {
		e.Log.DebugContext(ctx, "Could not wake other processes; they look by themselves", "error", err)
	}
}
