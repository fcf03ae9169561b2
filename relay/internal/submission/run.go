package submission

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// sweepBatch is how many due rows one sweep takes up.
const sweepBatch = 64

// sweepWorkers is how many of them run at once, and how many leases are handed
// over at once.
const sweepWorkers = 8

// Run follows submissions until ctx ends, and takes up rows that are due but
// that no wake-up brought: those of a process that died. When ctx ends it hands
// every lease over, so that another process goes on at once.
//
// Taking up, renewing leases and following the chain run beside each other, so
// that a chain that hangs costs no lease and a database that hangs no look.
func (e *Engine) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { e.sweep(ctx) })
	loops.Go(func() { e.tracker.keepLeases(ctx) })
	loops.Go(func() { e.tracker.run(ctx) })
	loops.Wait()
	e.handOver(context.WithoutCancel(ctx))
}

func (e *Engine) sweep(ctx context.Context) {
	tick := time.NewTicker(e.Timing.Sweep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ids, err := e.due(ctx)
		if err != nil {
			e.Log.WarnContext(ctx, "Could not look for due submissions", "error", err)
			continue
		}
		var g errgroup.Group
		g.SetLimit(sweepWorkers)
		for _, id := range ids {
			g.Go(func() error {
				ctx, cancel := e.unhurried(ctx)
				defer cancel()
				if err := e.Advance(ctx, id); err != nil && ctx.Err() == nil {
					e.Log.WarnContext(ctx, "Could not advance a due submission", "request_id", id, "error", err)
				}
				return nil
			})
		}
		_ = g.Wait() // each error is logged where it happens
	}
}

// stepPatience ends a step that hangs, on a database that is gone without a
// word for instance; the row's lease lets it be repeated.
const stepPatience = 30 * time.Second

// unhurried is the context of a step: a shutdown leaves it half a lease to finish.
func (e *Engine) unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	step, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepPatience)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(e.Timing.Lease/2, cancel) })
	return step, func() { stop(); cancel() }
}

func (e *Engine) due(ctx context.Context) ([]uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	return e.Store.Due(ctx, sweepBatch)
}

// handOver gives every lease back. The attempts live on: whoever takes the row
// settles them first.
func (e *Engine) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	entries := e.tracker.idle()
	var g errgroup.Group
	g.SetLimit(sweepWorkers)
	for _, w := range entries {
		g.Go(func() error {
			if err := e.Store.Release(ctx, w.c.Lease(), 0, ""); err != nil {
				e.Log.DebugContext(ctx, "Left a lease to lapse", "request_id", w.c.ID, "error", err)
			}
			e.tracker.drop(w)
			return nil
		})
	}
	_ = g.Wait() // each error is logged where it happens
	if len(entries) > 0 {
		e.Log.InfoContext(ctx, "Handed submissions over", "submissions", len(entries))
	}
}

// Watching is how many submissions this process follows.
func (e *Engine) Watching() int { return e.tracker.size() }
