// Package batch runs concurrent calls together, where one call for many costs little more than for one:
// a statement with its commit, or an RPC call for several accounts.
package batch

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Queue runs concurrent calls in batches. A call that finds a free runner runs at once. Calls that find
// none wait, and the next free runner runs them together.
type Queue[In, Out any] struct {
	// Run returns an Out for each In. Its error is the error of every call.
	Run func(ctx context.Context, batch []In) ([]Out, error)
	// Runners is the number of batches that run at once. With more, batches are smaller.
	Runners int
	// Limit is the largest number of calls in a batch.
	Limit int
	// Share, if it is not nil, replaces Limit by a number that depends on how many calls wait.
	Share func(waiting int) int
	// Stall is how long a call waits for a runner before it runs alone, because the connection of the
	// batch before it may be dead. With 0 calls wait however long it takes.
	Stall time.Duration

	mu      sync.Mutex
	waiting []*call[In, Out] // in order of arrival
	running int
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
	c := &call[In, Out]{ctx: ctx, in: in, done: make(chan struct{})}
	q.add(c)
	var stalled <-chan time.Time
	if q.Stall > 0 {
		timer := time.NewTimer(q.Stall)
		defer timer.Stop()
		stalled = timer.C
	}
	for {
		select {
		case <-stalled:
			if q.withdraw(c) {
				return q.alone(ctx, in)
			}
			stalled = nil // its batch runs
		case <-c.done:
			if !c.ran { // this call panics if it was the cause, and no other
				return q.alone(ctx, in)
			}
			return c.out, c.err
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// withdraw removes a waiting call. It returns false when the call's batch has begun.
func (q *Queue[In, Out]) withdraw(c *call[In, Out]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, c)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

func (q *Queue[In, Out]) alone(ctx context.Context, in In) (out Out, err error) {
	outs, err := q.Run(ctx, []In{in})
	if err != nil {
		return out, err
	}
	return outs[0], nil
}

func (q *Queue[In, Out]) add(c *call[In, Out]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, c)
	if q.running < q.Runners {
		q.running++
		go q.work()
	}
}

// work runs batches until no call waits.
func (q *Queue[In, Out]) work() {
	for {
		// Callers that are ready to run join the batch. Without this, most batches under load are the
		// first of several new calls alone, and a submission costs a tenth more.
		runtime.Gosched()
		batch := q.next()
		if batch == nil {
			return
		}
		q.runTogether(batch)
	}
}

// next removes a batch from the waiting calls. It returns nil, and ends the runner, when none waits.
// Calls whose context has ended are dropped.
func (q *Queue[In, Out]) next() []*call[In, Out] {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(c *call[In, Out]) bool { return c.ctx.Err() != nil })
	if len(q.waiting) == 0 {
		q.running--
		return nil
	}
	limit := q.Limit
	if q.Share != nil {
		limit = q.Share(len(q.waiting))
	}
	n := min(len(q.waiting), limit)
	batch := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return batch
}

// runTogether runs a batch. The batch's context ends when those of all its calls have ended, and has the
// latest of their deadlines if each has one.
func (q *Queue[In, Out]) runTogether(batch []*call[In, Out]) {
	ctx, cancel := contextFor(batch)
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

// contextFor returns a context with the values of the first call's.
func contextFor[In, Out any](batch []*call[In, Out]) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(batch[0].ctx)
	var latest time.Time
	for _, c := range batch {
		at, ok := c.ctx.Deadline()
		if !ok {
			return context.WithCancel(ctx)
		}
		if at.After(latest) {
			latest = at
		}
	}
	return context.WithDeadline(ctx, latest)
}

// Waiting is the number of calls that wait for a runner.
func (q *Queue[In, Out]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
