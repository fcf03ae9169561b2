package httpapi

import (
	"errors"
	"net/http"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// writeList writes the answer chunk by chunk. Each write has a deadline, which cuts off
// a stalled reader. The whole answer has a deadline too, which cuts off a client that
// reads a byte now and then.
func (a *api) writeList(w http.ResponseWriter, r *http.Request, l *list) error {
	control := http.NewResponseController(w)
	write := func(text []byte) error {
		deadline := a.Now().Add(a.ListStall)
		if last := l.began.Add(a.ListTime); last.Before(deadline) {
			deadline = last
		}
		if err := control.SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		_, err := w.Write(text)
		return err
	}
	for {
		if err := write(l.text); err != nil {
			return err
		}
		if l.next == l.to {
			return nil
		}
		ctx, cancel := a.call(r.Context())
		err := a.nextText(ctx, l)
		cancel()
		if err != nil {
			a.Log.DebugContext(r.Context(), "sending a list response failed", "request_id", requestContextOf(r.Context()).id, "error", disconnectReason(err))
			panic(http.ErrAbortHandler) // an answer without Content-Length must not end as if it were complete
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
