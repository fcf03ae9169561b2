package verify

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
)

// final reports whether nothing can change a row any more.
func (s *Submission) final() bool {
	return s.State == "failed" || s.State == "completed" && s.Finalized
}

// acceptedIsFinal checks invariant 1, accepted is durable. It includes rows whose clients
// got no answer.
func acceptedIsFinal(e *Evidence, r *Result) {
	x := newIndex(e)
	counted := make(map[uuid.UUID]bool)
	Each(e.Records, func(record *load.Record, _ *load.Request, a *load.Answer) {
		if a.Call == load.CallStatus && a.Status == http.StatusNotFound {
			r.fault("spend %d: relay %d answered 404 at %s for request %s, which had been accepted", record.Number, a.Relay+1, clock(a.At), a.RequestID)
		}
		if !a.Accepted() || counted[a.RequestID] {
			return
		}
		counted[a.RequestID] = true
		if x.submissions[a.RequestID] == nil {
			r.fault("spend %d: relay %d accepted request %s at %s, which the database does not have", record.Number, a.Relay+1, a.RequestID, clock(a.At))
		}
	})
	for i := range e.Submissions {
		s := &e.Submissions[i]
		if !s.final() {
			r.fault("request %s is %s, finalized %t, created at %s, after the load has ended", s.ID, s.State, s.Finalized, clock(s.CreatedAt))
		}
	}
	for i := range e.Executions {
		s := &e.Executions[i]
		if s.State != "failed" && (s.State != "completed" || !s.Finalized) {
			r.fault("the execution of request %s is %s, finalized %t, created at %s, after the load has ended", s.Swap, s.State, s.Finalized, clock(s.CreatedAt))
		}
	}
	r.Examined = len(counted) + len(e.Submissions) + len(e.Executions)
}
