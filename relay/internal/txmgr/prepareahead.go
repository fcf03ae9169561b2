package txmgr

import (
	"context"
	"fmt"
)

// Ahead is the first transaction of a job, prepared and simulated while the commit of its acceptance is
// under way, because each of the two takes a millisecond or more.
type Ahead struct {
	m *Manager
	// stop ends the preparation. done is closed when it has ended, and the fields below are set.
	stop context.CancelFunc
	done chan struct{}
	// draft is nil if nothing could be prepared. t is nil if the simulation, or what precedes it, failed
	// with failure or err.
	draft   *Draft
	t       *transaction
	failure *Failure
	err     error
}

// PrepareAhead prepares and simulates the first transaction of a job that is not accepted yet, for which
// capacity is reserved. It returns at once. draft returns the draft and the slot that the simulation must
// have reached, as for Launch; if it fails, nothing is prepared, and Launch begins anew. The caller must
// call Start or Cancel.
func (m *Manager) PrepareAhead(ctx context.Context, j *Job, draft func(context.Context) (*Draft, uint64, error)) *Ahead {
	j.queue = m.main()
	ctx, stop := m.stepContext(ctx)
	a := &Ahead{m: m, stop: stop, done: make(chan struct{})}
	m.steps.Go(func() {
		defer close(a.done)
		defer stop()
		defer func() {
			if p := recover(); p != nil {
				m.Observer.Attempt("panic")
				a.err = fmt.Errorf("preparation of a transaction panicked: %v", redact(p))
			}
		}()
		d, minContextSlot, err := draft(ctx)
		if err != nil {
			return
		}
		a.draft = d
		a.t, a.failure, a.err = m.prepareAndSimulate(ctx, j, d, minContextSlot)
	})
	return a
}

// Cancel releases what the transaction has reserved, at the latest when its preparation has ended.
func (a *Ahead) Cancel() {
	a.stop()
	release := func() {
		<-a.done
		if a.t != nil {
			a.m.abandon(a.t)
		}
	}
	select {
	case <-a.done:
		release() // now, because Launch may be about to reserve as much again
	default:
		a.m.steps.Go(release)
	}
}

// fits reports whether the transaction, or why there is none, is as good for Launch as a new one: a
// simulation that succeeded is, whatever slot it reached.
func (a *Ahead) fits(d *Draft, minContextSlot uint64) bool {
	return a.draft != nil && d.Urgent == a.draft.Urgent && d.Format == a.draft.Format && (a.failure == nil || a.failure.Slot >= minContextSlot)
}

// takeAhead waits for the job's transaction that was prepared ahead, and returns it; nil if there is none
// that fits.
func (j *Job) takeAhead(ctx context.Context, d *Draft, minContextSlot uint64) *Ahead {
	a := j.ahead
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil || !a.fits(d, minContextSlot) {
		j.cancelAhead()
		return nil
	}
	j.ahead = nil
	if a.t != nil {
		a.t.j = j
	}
	return a
}

// cancelAhead releases what was prepared ahead, if Launch has not used it.
func (j *Job) cancelAhead() {
	if j.ahead != nil {
		j.ahead.Cancel()
		j.ahead = nil
	}
}
