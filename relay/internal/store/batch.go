package store

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// batchRunners is the number of batches of a kind that a process runs at once. With more, the
	// batches are smaller and share fewer commits.
	batchRunners = 1
	// batchLimit bounds the calls of a batch, and so what a batch that fails repeats.
	batchLimit = 64
	// unknownToPlanner is the LIMIT of a batch's rows in SQL. Because the planner does not know its
	// value, it expects one row for arrays of any length. Otherwise it finds the plan for the values
	// of a lone call cheaper than that for any values, and plans each statement anew, which takes
	// longer than to run it.
	unknownToPlanner = `(SELECT 1000)`
)

// batcher runs concurrent calls in batches, because a statement and a commit for many rows cost
// little more than for one. A call that finds a free runner runs at once, alone, in its own
// goroutine. Calls that find none wait, and the next free runner runs them together.
type batcher[In, Out any] struct {
	// run returns an Out for each In. Its error is the error of every call.
	run func(ctx context.Context, batch []In) ([]Out, error)

	mu      sync.Mutex
	waiting []*batchCall[In, Out] // in order of arrival
	running int
}

// batchCall is a call that waits for its batch.
type batchCall[In, Out any] struct {
	ctx  context.Context
	in   In
	done chan struct{} // closed when the batch has ended
	ran  bool          // false after a panic
	out  Out
	err  error
}

// do runs a call. If ctx ends while the call's batch runs, do returns at once, and it is unknown
// whether the batch succeeds.
func (b *batcher[In, Out]) do(ctx context.Context, in In) (out Out, err error) {
	c := b.enqueue(ctx, in)
	if c == nil {
		defer b.release()
		return b.alone(ctx, in)
	}
	select {
	case <-c.done:
		if !c.ran { // this call panics if it was the cause, and no other
			return b.alone(ctx, in)
		}
		return c.out, c.err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

func (b *batcher[In, Out]) alone(ctx context.Context, in In) (out Out, err error) {
	outs, err := b.run(ctx, []In{in})
	if err != nil {
		return out, err
	}
	return outs[0], nil
}

// enqueue returns the waiting call, or nil if the caller is now a runner.
func (b *batcher[In, Out]) enqueue(ctx context.Context, in In) *batchCall[In, Out] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running < batchRunners {
		b.running++
		return nil
	}
	c := &batchCall[In, Out]{ctx: ctx, in: in, done: make(chan struct{})}
	b.waiting = append(b.waiting, c)
	return c
}

// release passes the runner to the calls that wait meanwhile.
func (b *batcher[In, Out]) release() {
	if batch := b.next(); batch != nil {
		go func() {
			for ; batch != nil; batch = b.next() {
				b.runTogether(batch)
			}
		}()
	}
}

// next removes a batch from the waiting calls. It returns nil, and ends the runner, when none waits.
// Calls whose context has ended are dropped.
func (b *batcher[In, Out]) next() []*batchCall[In, Out] {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(c *batchCall[In, Out]) bool { return c.ctx.Err() != nil })
	if len(b.waiting) == 0 {
		b.running--
		return nil
	}
	n := min(len(b.waiting), batchLimit)
	batch := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	return batch
}

// runTogether runs a batch. The batch's context ends when those of all its calls have ended.
func (b *batcher[In, Out]) runTogether(batch []*batchCall[In, Out]) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(batch[0].ctx))
	ins, stops, left := make([]In, len(batch)), make([]func() bool, len(batch)), atomic.Int64{}
	left.Store(int64(len(batch)))
	for i, c := range batch {
		ins[i] = c.in
		stops[i] = context.AfterFunc(c.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
	}
	defer func() {
		_ = recover() // the call that causes the panic panics again, where it is logged
		cancel()
		for i, c := range batch {
			stops[i]()
			close(c.done)
		}
	}()
	outs, err := b.run(ctx, ins)
	for i, c := range batch {
		if c.ran, c.err = true, err; err == nil {
			c.out = outs[i]
		}
	}
}
