package httpapi

import (
	"net/http"
	"time"

	"github.com/relaypool/relaypool/relay/openapi"
)

// GetBacklog counts the whole fleet's work.
func (a *api) GetBacklog(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := a.call(r.Context())
	defer cancel()
	b, err := a.Submissions.Backlog(ctx)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	held := b.Held
	if held == nil {
		held = map[string]int64{} // null is not an object
	}
	a.answer(w, r, http.StatusOK, openapi.Backlog{
		DueCount: b.Due, OldestDueAgeSeconds: int64(b.OldestDue / time.Second), Held: held,
		PendingCount: b.Pending, ProcessingCount: b.Processing,
		OldestAgeSeconds: int64(b.OldestAge / time.Second),
		QueuedJobs:       append([]int64{}, b.QueuedJobs...),
	})
}
