package submission

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// sweepBatch is how many due rows one sweep takes up.
const sweepBatch = 64

// sweepWorkers is how many of them run at once.
const sweepWorkers = 8

// Run follows submissions until ctx ends, and takes up rows that are due but
// that no wake-up brought: those of a process that died. When ctx ends it hands
// every lease over, so that another process goes on at once.
func (e *Engine) Run(ctx context.Context) {
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		e.sweep(ctx)
	}()
	e.tracker.run(ctx)
	<-swept
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
		ids, err := e.Store.Due(ctx, sweepBatch)
		if err != nil {
			e.Log.WarnContext(ctx, "Could not look for due submissions", "error", err)
			continue
		}
		var g errgroup.Group
		g.SetLimit(sweepWorkers)
		for _, id := range ids {
			g.Go(func() error {
				if err := e.Advance(ctx, id); err != nil && ctx.Err() == nil {
					e.Log.WarnContext(ctx, "Could not advance a due submission", "request_id", id, "error", err)
				}
				return nil
			})
		}
		_ = g.Wait() // each error is logged where it happens
	}
}

// handOver gives every lease back. The attempts live on: whoever takes the row
// settles them first.
func (e *Engine) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Lease)
	defer cancel()
	entries := e.tracker.idle()
	for _, w := range entries {
		if err := e.Store.Release(ctx, w.c.Lease(), 0, ""); err != nil {
			e.Log.DebugContext(ctx, "Left a lease to lapse", "request_id", w.c.ID, "error", err)
		}
		e.tracker.drop(w.c.ID)
	}
	if len(entries) > 0 {
		e.Log.InfoContext(ctx, "Handed submissions over", "submissions", len(entries))
	}
}

// Watching is how many submissions this process follows.
func (e *Engine) Watching() int { return e.tracker.size() }
