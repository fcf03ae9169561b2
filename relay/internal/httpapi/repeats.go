package httpapi

import (
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// repeatWait is the shortest wait for the outcome of a repeat. It is longer than the time
// from a transaction's landing to its confirmation.
const repeatWait = 5 * time.Second

// idOf is the id in the answer to a request. The id gives access to /status, and
// anybody can copy the content of a landed submission from the chain. So the id is the
// nil UUID if the request has only the content in common with a landed submission.
func idOf(s *submission.Submission) uuid.UUID {
	if s.Repeated && s.State == submission.Completed {
		return uuid.Nil
	}
	return s.ID
}
