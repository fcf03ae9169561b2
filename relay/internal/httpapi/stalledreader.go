package httpapi

import (
	"errors"
	"io"
	"net/http"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// writeList writes the answer part by part. Each part has a deadline, which cuts off
// a stalled reader. The whole answer has a deadline too, which cuts off a client that
// reads a byte now and then.
func (a *api) writeList(w http.ResponseWriter, r *http.Request, l *list) error {
	control := http.NewResponseController(w)
	var stored io.ReadSeeker
	closeStored := func() error { return nil }
	defer func() { _ = closeStored() }()
	write := func() error {
		deadline := a.Now().Add(a.ListStall)
		if last := l.began.Add(a.ListTime); last.Before(deadline) {
			deadline = last
		}
		if err := control.SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if len(l.text) > 0 {
			if _, err := w.Write(l.text); err != nil {
				return err
			}
		}
		if l.stored.size == 0 {
			return nil
		}
		if stored == nil {
			stored, closeStored = l.store.reader()
		}
		if _, err := stored.Seek(l.stored.at, io.SeekStart); err != nil {
			return err
		}
		_, err := io.CopyN(w, stored, int64(l.stored.size))
		if err != nil { // if the file is why, the store is dropped
			if _, lost := a.chunks.appendTo(nil, l.store, l.stored, 0, l.stored.size); lost != nil {
				return lost
			}
		}
		return err
	}
	for {
		if err := write(); err != nil {
			return err
		}
		if l.ended {
			return nil
		}
		ctx, cancel := a.call(r.Context())
		err := a.nextPart(ctx, l)
		cancel()
		if err != nil {
			return err
		}
	}
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
