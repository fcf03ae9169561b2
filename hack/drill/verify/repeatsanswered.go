package verify

import (
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
)

// repeatsAnswered checks that a repeated request is answered with the earlier submission
// unless that one failed: of the rows with the same inputs, at most one has not failed.
func repeatsAnswered(e *Evidence, r *Result) {
	type content struct{ inputs, recipient string }
	x, alive := newIndex(e), make(map[content]uuid.UUID)
	for i := range e.Submissions {
		s := &e.Submissions[i]
		r.Examined++
		if s.State == "failed" {
			continue
		}
		key := content{string(s.Inputs.Bytes()), s.Recipient.String()}
		if other, taken := alive[key]; taken {
			r.fault("requests %s and %s have the same public inputs and recipient, and neither failed", other, s.ID)
		}
		alive[key] = s.ID
	}
	Each(e.Records, func(record *load.Record, q *load.Request, a *load.Answer) {
		for i := range q.Answers {
			earlier := &q.Answers[i]
			if !earlier.Accepted() || !a.Accepted() || earlier.RequestID == a.RequestID || !earlier.At.Before(a.Sent) {
				continue
			}
			s := x.submissions[earlier.RequestID]
			if s != nil && (s.State != "failed" || s.CompletedAt.After(a.At)) {
				r.fault("spend %d: relay %d answered a repeat of request %s at %s with a new request %s, though the first had not failed", record.Number, a.Relay+1, earlier.RequestID, clock(a.At), a.RequestID)
			}
		}
	})
}
