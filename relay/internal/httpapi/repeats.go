package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// await returns the submission once it is done, or in its current state when the
// wait is over. The submission is accepted, so an error of the wait is not one of
// the submission: the client gets the known state and follows it at /status.
//
// A repeat always waits a little. A landing is public on the chain a moment
// before the relay knows it: whoever copied the proof from there gets the
// answer for a landed one.
func (a *api) await(r *http.Request, s *submission.Submission, wait time.Duration) *submission.Submission {
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
			a.Log.WarnContext(r.Context(), "waiting for an outcome failed", "request_id", exchangeOf(r.Context()).id, "error", err)
		}
		return s
	}
	later.Repeated = s.Repeated
	return later
}

// repeatWait is above the time from a transaction's landing to its
// confirmation.
const repeatWait = 5 * time.Second

// idOf is the id in the answer to a request. Only the sender of a landed
// submission, or a client with its Idempotency-Key, may ask for it at /status;
// others get the nil UUID.
func idOf(s *submission.Submission) uuid.UUID {
	if s.Repeated && s.State == submission.Completed {
		return uuid.Nil
	}
	return s.ID
}
