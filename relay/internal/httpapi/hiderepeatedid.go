package httpapi

import (
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// idOf is the id in the answer to a request. The id gives access to /status, and anybody can copy
// the content of a landed submission from the chain. A request that only repeats such content
// therefore gets the nil UUID.
func idOf(s *submission.Submission) uuid.UUID {
	if s.Repeated && s.State == submission.Completed {
		return uuid.Nil
	}
	return s.ID
}
