// Package batch runs concurrent calls together, where one call for many costs little more than for one:
// a statement with its commit, or an RPC call for several accounts.
package batch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Queue runs concurrent calls in batches. A call that finds a free runner runs at once, alone, in its
// own goroutine. Calls that find none wait, and the next free runner runs them together.
type Queue[In, Out any] struct {
	// Run returns an Out for each In. Its error is the error of every call.
	Run func(ctx context.Context, batch []In) ([]Out, error)
	// Runners is the number of batches that run at once. With more, batches are smaller.
	Runners int
	// Limit is the largest number of calls in a batch.
	Limit int
	// Stall is how long a batch may run before the next call passes it as one more runner, because the
	// batch's connection may be dead. With 0 calls wait however long it runs.
	Stall time.Duration

	mu      sync.Mutex
	waiting []*call[In, Out] // in order of arrival
	running int
	began   time.Time // when the last batch began
}

// call is a call that waits for its batch.
type call[In, Out any] struct {
	ctx  context.Context
	in   In
	done chan struct{} // closed when the batch has ended
	ran  bool          // false after a panic
	out  Out
	err  error
}

// Do runs a call. If ctx ends while the call's batch runs, Do returns at once, and it is unknown
// whether the batch succeeds.
func (q *Queue[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	c := q.enqueue(ctx, in)
	if c == nil {
		defer q.release(time.Now())
		return q.alone(ctx, in)
	}
	select {
	case <-c.done:
		if !c.ran { // this call panics if it was the cause, and no other
			return q.alone(ctx, in)
		}
		return c.out, c.err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

func (q *Queue[In, Out]) alone(ctx context.Context, in In) (out Out, err error) {
	outs, err := q.Run(ctx, []In{in})
	if err != nil {
		return out, err
	}
	return outs[0], nil
}

// enqueue returns the waiting call, or nil if the caller is now a runner.
func (q *Queue[In, Out]) enqueue(ctx context.Context, in In) *call[In, Out] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running < q.Runners || q.stalled(q.began) {
		q.running++
		q.began = time.Now()
		return nil
	}
	c := &call[In, Out]{ctx: ctx, in: in, done: make(chan struct{})}
	q.waiting = append(q.waiting, c)
	return c
}

// stalled reports whether a batch that began at that time takes too long.
func (q *Queue[In, Out]) stalled(began time.Time) bool {
	return q.Stall > 0 && time.Since(began) >= q.Stall
}

// release passes the runner, after a call that ran alone since began, to the calls that wait meanwhile.
func (q *Queue[In, Out]) release(began time.Time) {
	if batch := q.next(began); batch != nil {
		go func() {
			for batch != nil {
				began := time.Now()
				q.runTogether(batch)
				batch = q.next(began)
			}
		}()
	}
}

// next removes a batch from the waiting calls, after one that ran since began. It returns nil, and ends
// the runner, when none waits, or when another runner passed it. Calls whose context has ended are
// dropped.
func (q *Queue[In, Out]) next(began time.Time) []*call[In, Out] {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(c *call[In, Out]) bool { return c.ctx.Err() != nil })
	if len(q.waiting) == 0 || q.running > q.Runners && q.stalled(began) {
		q.running--
		return nil
	}
	q.began = time.Now()
	n := min(len(q.waiting), q.Limit)
	batch := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return batch
}

// runTogether runs a batch. The batch's context ends when those of all its calls have ended.
func (q *Queue[In, Out]) runTogether(batch []*call[In, Out]) {
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
	outs, err := q.Run(ctx, ins)
	for i, c := range batch {
		if c.ran, c.err = true, err; err == nil {
			c.out = outs[i]
		}
	}
}

// Waiting is the number of calls that wait for a runner.
func (q *Queue[In, Out]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
