package httpapi

import (
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// withRolledBack adds to the refusal of a failed submission that a fork rolled the submission back,
// as its status does. A client that saw the submission completed has to learn this.
func withRolledBack(f *refusal.Refusal, s *submission.Submission) *refusal.Refusal {
	if s.RolledBack {
		return f.With("rolled_back", true)
	}
	return f
}
