package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// repeatWait is the shortest wait for the outcome of a repeated request. It is longer than the
// time from a transaction's landing to its confirmation.
const repeatWait = 5 * time.Second

// awaitOutcome returns the submission once it is done, or in its current state when the wait is
// over. If waiting fails, the submission stays accepted. The client then gets the last known
// state, and can poll /status.
//
// A repeated request waits at least repeatWait, because a transaction is public on the chain a
// moment before the relay knows that it landed. Somebody who copies the proof in that moment must
// get the answer for a landed submission, which has no id.
func (a *api) awaitOutcome(r *http.Request, s *submission.Submission, wait time.Duration) *submission.Submission {
	if s.Repeated {
		wait = max(wait, repeatWait)
	}
	if s.Done() || wait <= 0 {
		return s
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	later, err := a.Submissions.Wait(ctx, s.ID)
	if err != nil {
		if r.Context().Err() == nil {
			a.Log.WarnContext(r.Context(), "waiting for an outcome failed", "request_id", requestContextOf(r.Context()).id, "error", err)
		}
		return s
	}
	later.Repeated = s.Repeated
	return later
}
