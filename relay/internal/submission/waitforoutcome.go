package submission

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// rereadInterval is the interval at which a waiter reads the row without a notification. The
// reads are needed because a notification can be lost with its connection.
const rereadInterval = 3 * time.Second

// Wait returns the submission once it is done, or its present state when ctx ends or the
// reader closes. Wait does not read the row at the start, because the caller has just read it. It
// reads the row after a notification, or when none arrives for a while. While the database is
// unreachable, Wait goes on, because the accepted submission is still under way.
func (d *Reader) Wait(ctx context.Context, id uuid.UUID) (*Submission, error) {
	ch := make(chan struct{}, 1)
	d.addWaiter(id, ch)
	defer d.removeWaiter(id, ch)
	reread := time.NewTicker(rereadInterval)
	defer reread.Stop()
	for {
		select {
		case <-ctx.Done():
			return d.read(ctx, id)
		case <-d.closing:
			return d.read(ctx, id)
		case <-ch:
		case <-reread.C:
		}
		// The read outlives ctx: the end of the wait must not turn an answer into an error.
		s, err := d.read(ctx, id)
		if ctx.Err() != nil || (err == nil && s.Done()) {
			return s, err
		}
	}
}

// Close ends all waits; a later Wait returns immediately. A relay calls Close when it shuts down,
// so that it can still respond to the waiting clients.
func (d *Reader) Close() { d.closed.Do(func() { close(d.closing) }) }

func (d *Reader) read(ctx context.Context, id uuid.UUID) (*Submission, error) {
	const readTimeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	return d.Get(ctx, id)
}
