package submission

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// lookAgain is how often a waiter reads the row although nobody told of an
	// outcome: a notification can be lost with its connection.
	lookAgain = 3 * time.Second
	// listenAgain is the pause before a broken connection for notifications is made anew.
	listenAgain = time.Second
)

// Desk answers about submissions: it waits for outcomes and reads rows.
type Desk struct {
	store Store
	log   *slog.Logger

	mu      sync.Mutex
	waiting map[uuid.UUID]map[chan struct{}]struct{}
	// closing ends all waits.
	closing chan struct{}
	closed  sync.Once
}

// NewDesk makes a desk.
func NewDesk(store Store, log *slog.Logger) (*Desk, error) {
	if store == nil || log == nil {
		return nil, errors.New("the desk needs a store and a log")
	}
	return &Desk{store: store, log: log, waiting: map[uuid.UUID]map[chan struct{}]struct{}{}, closing: make(chan struct{})}, nil
}

// Run passes notifications on until ctx ends: outcomes to those who wait, and
// that something is due to due.
func (d *Desk) Run(ctx context.Context, l Listener, due func()) {
	for ctx.Err() == nil {
		err := l.Listen(ctx, Heard{Done: d.tell, Due: due})
		if ctx.Err() != nil {
			return
		}
		d.log.WarnContext(ctx, "Lost the connection for outcomes; waiters look at their rows until it is back", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}

func (d *Desk) tell(id uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ch := range d.waiting[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Wait returns the submission once it is done, or as it is when ctx ends or the
// desk closes. The caller knows that it was not done a moment ago, so the row is
// read when somebody tells of an outcome, or in case nobody could. A database
// that is away is sat out: what was accepted is still under way.
func (d *Desk) Wait(ctx context.Context, id uuid.UUID) (*Submission, error) {
	ch := make(chan struct{}, 1)
	d.enter(id, ch)
	defer d.leave(id, ch)
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return d.read(ctx, id)
		case <-d.closing:
			return d.read(ctx, id)
		case <-ch:
		case <-again.C:
		}
		// The read outlives ctx: the wait being over must not turn an answer into an error.
		s, err := d.read(ctx, id)
		if ctx.Err() != nil || (err == nil && s.Done()) {
			return s, err
		}
	}
}

// Waiting is how many wait for an outcome.
func (d *Desk) Waiting() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, waiters := range d.waiting {
		n += len(waiters)
	}
	return n
}

// Close ends all waits, those to come too: while the relay drains, clients are
// told where to follow what they have submitted.
func (d *Desk) Close() { d.closed.Do(func() { close(d.closing) }) }

func (d *Desk) read(ctx context.Context, id uuid.UUID) (*Submission, error) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return d.store.Get(ctx, id)
}

func (d *Desk) enter(id uuid.UUID, ch chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[id] == nil {
		d.waiting[id] = map[chan struct{}]struct{}{}
	}
	d.waiting[id][ch] = struct{}{}
}

func (d *Desk) leave(id uuid.UUID, ch chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting[id], ch)
	if len(d.waiting[id]) == 0 {
		delete(d.waiting, id)
	}
}

// Get reads a submission; the refusal not_found when there is none.
func (d *Desk) Get(ctx context.Context, id uuid.UUID) (*Submission, error) {
	return d.store.Get(ctx, id)
}

// Backlog reads the fleet's work.
func (d *Desk) Backlog(ctx context.Context) (Backlog, error) { return d.store.Backlog(ctx) }
