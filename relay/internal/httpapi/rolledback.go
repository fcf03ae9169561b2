package httpapi

import (
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

// A client that saw a submission completed has to learn that its fork died. These functions tell
// it, in the submission's status and in the answer for a failed submission.

func showRolledBack(data *openapi.SubmissionStatus, s *submission.Submission) {
	data.RolledBack = s.RolledBack
}

func withRolledBack(f *refusal.Refusal, s *submission.Submission) *refusal.Refusal {
	if s.RolledBack {
		return f.With("rolled_back", true)
	}
	return f
}
