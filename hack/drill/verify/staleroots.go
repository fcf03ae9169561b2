package verify

import (
	"sort"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
)

// rootCode is the refusal that this check is about.
const rootCode = "root_not_found"

// staleRootsAreTrue compares every root_not_found with the root histories that the chain's
// own node returned at that time.
//
// The relay decided about the root between two moments: for a refusal between the request and the
// answer, for a failed submission between its acceptance and its outcome. The decision was right
// when the root was missing from a history observed in that time, or from the last one before. It
// was wrong when all of these histories contain the root: a lagging or lying node made the relay
// refuse a good proof. Without a history observed near that time, the check decides nothing.
func staleRootsAreTrue(e *Evidence, r *Result) {
	Each(e.Records, func(record *load.Record, q *load.Request, a *load.Answer) {
		if a.Code != rootCode || a.Call == load.CallStatus || a.RequestID != uuid.Nil {
			return
		}
		r.Examined++
		switch e.rootMissing(q.Inputs.Root, a.Sent, a.At) {
		case no:
			r.fault("spend %d: relay %d refused root %x with %s between %s and %s, when the root history held it", record.Number, a.Relay+1, q.Inputs.Root[:4], rootCode, clock(a.Sent), clock(a.At))
		case unknown:
			r.Undecided++
		case yes:
		}
	})
	for i := range e.Submissions {
		s := &e.Submissions[i]
		if s.State != "failed" || s.Code != rootCode {
			continue
		}
		r.Examined++
		switch e.rootMissing(s.Inputs.Root, s.CreatedAt, s.CompletedAt) {
		case no:
			r.fault("request %s failed with %s between %s and %s, when the root history held its root", s.ID, rootCode, clock(s.CreatedAt), clock(s.CompletedAt))
		case unknown:
			r.Undecided++
		case yes:
		}
	}
}

type answer int

const (
	unknown answer = iota
	yes
	no
)

// maxHistoryGap is the longest time between a decision and a history that can judge it: a few
// slots. A longer gap in the observations proves nothing.
const maxHistoryGap = 5 * time.Second

// maxNextHistory is the time after a decision within which the next history was observed.
const maxNextHistory = 500 * time.Millisecond

// rootMissing reports whether the root was missing from the root history at some moment from
// first to last. Histories observed shortly after last count too: the root may have been
// evicted before last.
func (e *Evidence) rootMissing(root [32]byte, first, last time.Time) answer {
	// The last history observed before first was still the current one then.
	from := max(sort.Search(len(e.RootHistories), func(i int) bool { return e.RootHistories[i].At.After(first) })-1, 0)
	observed := false
	for _, history := range e.RootHistories[from:] {
		if history.At.Sub(last) > maxNextHistory {
			break
		}
		if first.Sub(history.At) > maxHistoryGap {
			continue
		}
		observed = observed || !history.At.After(last)
		if _, present := history.Roots[root]; !present {
			return yes
		}
	}
	if !observed {
		return unknown
	}
	return no
}
