package txmgr

import "context"

// Prepared is the first transaction of a job, prepared and simulated before its acceptance is committed, which
// shows that the job's notes are unspent, or beside the commit. If the preparation fails, Launch begins anew.
type Prepared struct {
	m *Manager
	// stop ends the preparation. done is closed when it has ended; t is then set if it succeeded.
	stop context.CancelFunc
	done chan struct{}
	t    *transaction
}

// Prepare begins to prepare and simulate the first transaction of a job that is not accepted yet, for which
// capacity is reserved. draft returns the draft, and the slot that the simulation must have reached. Nothing
// is signed before Launch. The caller must call Start or Cancel.
func (m *Manager) Prepare(ctx context.Context, j *Job, draft func(context.Context) (*Draft, uint64, error)) *Prepared {
	j.queue = m.main()
	ctx, stop := m.stepContext(ctx)
	p := &Prepared{m: m, stop: stop, done: make(chan struct{})}
	m.steps.Go(func() {
		defer close(p.done)
		defer stop()
		defer func() {
			if p := recover(); p != nil {
				m.Observer.Attempt("panic")
				m.Log.ErrorContext(ctx, "preparing a transaction panicked: its first step tries again", "request_id", j.Row.RequestID(), "error", redact(p))
			}
		}()
		if d, minContextSlot, err := draft(ctx); err == nil {
			p.t, _, _ = m.prepareAndSimulate(ctx, j, d, minContextSlot)
		}
	})
	return p
}

// Succeeded waits until the preparation has ended, and reports whether a node has simulated the transaction
// with success. It returns false if ctx ends first.
func (p *Prepared) Succeeded(ctx context.Context) bool {
	select {
	case <-p.done:
		return p.t != nil
	case <-ctx.Done():
		return false
	}
}

// Cancel ends the preparation, and releases what the transaction has reserved.
func (p *Prepared) Cancel() {
	p.stop()
	<-p.done
	if p.t != nil {
		p.m.abandon(p.t)
	}
}

// takePrepared waits for the job's prepared transaction, and returns it if it is like the draft; nil if
// there is none.
func (j *Job) takePrepared(ctx context.Context, d *Draft) *transaction {
	if j.prepared == nil {
		return nil
	}
	select {
	case <-j.prepared.done:
		if t := j.prepared.t; t != nil && t.draft.Urgent == d.Urgent && t.draft.Format == d.Format {
			j.prepared, t.j = nil, j
			return t
		}
	case <-ctx.Done():
	}
	j.cancelPrepared()
	return nil
}

// cancelPrepared cancels the job's prepared transaction, if Launch has not used it.
func (j *Job) cancelPrepared() {
	if j.prepared != nil {
		j.prepared.Cancel()
		j.prepared = nil
	}
}
