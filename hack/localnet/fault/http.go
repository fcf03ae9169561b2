package fault

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// Wait waits for d. It reports false when ctx ends first.
func Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// FailHTTP fails a request as the rule says. For a rule with a status, body writes
// the answer. A hang ends when the client goes away or closed is closed.
func (r *Rule) FailHTTP(w http.ResponseWriter, req *http.Request, closed <-chan struct{}, body func()) {
	if r.Status != 0 {
		if r.RetryAfter > 0 {
			seconds := (r.RetryAfter + time.Second - 1) / time.Second
			w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
		}
		body()
		return
	}
	if r.Hang {
		select {
		case <-req.Context().Done():
		case <-closed:
		}
	}
	panic(http.ErrAbortHandler) // makes the server close the connection without an answer
}
