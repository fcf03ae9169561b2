package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

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
	return write([]byte(l.tail()))
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
