package txmgr

import (
	"context"
	"fmt"
	"time"
)

// stepTimeout ends a hanging step, for instance when the database stopped responding. The
// next process to claim the row repeats the step.
const stepTimeout = 30 * time.Second

// stepContext is the context of a step. Once a shutdown has begun, the step has half the
// duration of a lease to finish.
func (m *Manager) stepContext(ctx context.Context) (context.Context, context.CancelFunc) {
	step, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	stop := context.AfterFunc(m.stopping, func() { time.AfterFunc(m.Timing.Lease/2, cancel) })
	return step, func() { stop(); cancel() }
}

// start starts a goroutine that runs the first step of a job. The job already has its lease and its
// capacity.
func (m *Manager) start(ctx context.Context, l *Queue, j *Job) {
	j.queue = l
	w, duplicate := m.tracker.add(j)
	m.steps.Go(func() {
		ctx, cancel := m.stepContext(ctx)
		defer cancel()
		if duplicate { // the lease is released, so that the job is claimed under a new epoch
			j.cancelPrepared()
			m.deferJob(ctx, w, ErrLeaseLost)
			return
		}
		m.step(ctx, w)
	})
}

// step advances a job under this process's lease. At the end it drops the job, unless the job
// landed or is to be tracked. It recovers from a panic, because the process works on other jobs
// too.
func (m *Manager) step(ctx context.Context, w *entry) {
	defer m.tracker.stepEnded(w)
	defer func() {
		if p := recover(); p != nil {
			m.Observer.Attempt("panic")
			m.deferJob(ctx, w, fmt.Errorf("step panicked: %v", redact(p)))
		}
	}()
	next, err := advance(ctx, w.j)
	switch {
	case err != nil:
		m.deferJob(ctx, w, err)
	case next.Landing != nil:
		m.tracker.recordLanding(w, *next.Landing)
	case next.Track:
		m.tracker.track(w)
	default:
		m.tracker.drop(w)
	}
}

// advance advances a job. A prepared transaction that is not used releases what it has reserved, while
// the step still owns the job.
func advance(ctx context.Context, j *Job) (Next, error) {
	defer j.cancelPrepared() // also after a panic
	return j.queue.Handler.Advance(ctx, j)
}

// redact returns the part of a panic value that contains nothing of a request: a runtime
// error, or only the value's type.
func redact(p any) any {
	type runtimeError interface {
		error
		RuntimeError()
	}
	if err, ok := p.(runtimeError); ok {
		return err
	}
	return fmt.Sprintf("%T", p)
}
