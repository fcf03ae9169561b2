package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// maxReaders is how many answers of GET /commitments may be under way, and
	// readersPerAddress how many of them to one client address. Each keeps a chunk in
	// memory, and a socket's buffer until the client has read it.
	maxReaders        = 128
	readersPerAddress = 8
)

// readers counts the answers of GET /commitments that are under way.
type readers struct {
	mu        sync.Mutex
	all       int
	byAddress map[string]int
}

// enter reserves capacity for an answer; leave releases it.
func (r *readers) enter(address string) (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.byAddress[address] >= readersPerAddress:
		return nil, refusal.New(refusal.RateLimited,
			"%d lists are being read from your address: that is the limit; read those to their end, or close them", readersPerAddress)
	case r.all >= maxReaders:
		return nil, refusal.New(refusal.RateLimited,
			"%d lists are being read from this relay, as many as it serves at once: send the request again after Retry-After", maxReaders)
	}
	r.all++
	r.byAddress[address]++
	return func() { r.leave(address) }, nil
}

func (r *readers) leave(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	if r.byAddress[address]--; r.byAddress[address] == 0 {
		delete(r.byAddress, address)
	}
}

// writeList writes the answer chunk by chunk. Each write has a deadline, which cuts off
// a stalled reader. The whole answer has a deadline too, which cuts off a client that
// reads a byte now and then.
func (a *api) writeList(w http.ResponseWriter, r *http.Request, l *list, began time.Time) error {
	control := http.NewResponseController(w)
	write := func(text []byte) error {
		deadline := a.Now().Add(a.ListStall)
		if last := began.Add(a.ListTime); last.Before(deadline) {
			deadline = last
		}
		if err := control.SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		_, err := w.Write(text)
		return err
	}
	if err := write([]byte(listHead)); err != nil {
		return err
	}
	for text, next := l.text, l.next; len(text) > 0; {
		if next == l.to {
			text = text[:len(text)-1]
		}
		if err := write(text); err != nil {
			return err
		}
		if next == l.to {
			break
		}
		var err error
		if text, next, err = a.nextChunk(r.Context(), l, next); err != nil {
			return err
		}
	}
	return write([]byte(l.end()))
}

func (a *api) nextChunk(ctx context.Context, l *list, from uint64) ([]byte, uint64, error) {
	ctx, cancel := a.call(ctx)
	defer cancel()
	return a.chunks.read(ctx, l.pos, from, l.to)
}

// disconnectReason says why a list was cut off. A network error contains the client's
// address, so only its kind is logged.
func disconnectReason(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, commitments.ErrMoved):
		return err.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the client did not read it in time"
	default:
		return "the client left, or the leaves could not be read"
	}
}
