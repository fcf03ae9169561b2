package submission

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
)

// listenRetry is the pause before a broken notification connection is replaced.
const listenRetry = time.Second

// Reader reads submissions, and waits for their outcomes.
type Reader struct {
	store  Store
	leaves LeafIndex
	log    *slog.Logger

	mu      sync.Mutex
	waiting map[uuid.UUID]map[chan struct{}]struct{}
	// closing ends all waits: see Close.
	closing chan struct{}
	closed  sync.Once
}

// NewReader makes a Reader.
func NewReader(store Store, leaves LeafIndex, log *slog.Logger) (*Reader, error) {
	if store == nil || leaves == nil || log == nil {
		return nil, errors.New("a reader of submissions needs a store, the leaves and a log")
	}
	return &Reader{store: store, leaves: leaves, log: log, waiting: map[uuid.UUID]map[chan struct{}]struct{}{}, closing: make(chan struct{})}, nil
}

// Run receives notifications until ctx ends. It wakes the callers that wait for a finished
// submission, and calls due when work became due.
func (d *Reader) Run(ctx context.Context, l Listener, due func()) {
	for ctx.Err() == nil {
		err := l.Listen(ctx, Notifications{Done: d.notify, Due: due})
		if ctx.Err() != nil {
			return
		}
		d.log.WarnContext(ctx, "notification connection lost; waiters poll until it is back", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(listenRetry):
		}
	}
}

func (d *Reader) notify(id uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ch := range d.waiting[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Waiting returns how many callers wait for an outcome.
func (d *Reader) Waiting() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, waiters := range d.waiting {
		n += len(waiters)
	}
	return n
}

func (d *Reader) addWaiter(id uuid.UUID, ch chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[id] == nil {
		d.waiting[id] = map[chan struct{}]struct{}{}
	}
	d.waiting[id][ch] = struct{}{}
}

func (d *Reader) removeWaiter(id uuid.UUID, ch chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting[id], ch)
	if len(d.waiting[id]) == 0 {
		delete(d.waiting, id)
	}
}

// Get reads a submission; the refusal not_found when there is none.
func (d *Reader) Get(ctx context.Context, id uuid.UUID) (*Submission, error) {
	s, err := d.store.Get(ctx, id)
	if err == nil {
		addLeaves(s, d.leaves)
	}
	return s, err
}

// Backlog reads the work of all relays.
func (d *Reader) Backlog(ctx context.Context) (Backlog, error) { return d.store.Backlog(ctx) }
