package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
)

// TestKnownPosition reads lists from a relay that may have missed what other relays published since it
// last read the position.
func TestKnownPosition(t *testing.T) {
	t.Parallel()
	const before, after = 3000, 3002 // leaves when the relay reads the position, and leaves later
	tag := func(from, leaves uint64) string {
		d := publishedLeaves(from + leaves)
		resp, _ := newFixture(t, d).do(t, get(fmt.Sprintf("/commitments?from_index=%d", from)))
		return resp.Header.Get("Etag")
	}
	type answer struct {
		status, leaves, reads int // reads of the position
	}
	tests := map[string]struct {
		query, tag string
		age        time.Duration
		want       answer
	}{
		"all leaves that the request names are known": {query: "?from_index=10&limit=100", want: answer{200, 100, 0}},
		"up to the newest known leaf":                 {query: "?from_index=2900&limit=100", want: answer{200, 100, 0}},
		"one more than is known":                      {query: "?from_index=2900&limit=101", want: answer{200, 101, 1}},
		"all leaves from one on":                      {query: "?from_index=2900", want: answer{200, 102, 1}},
		"from a leaf that another relay has shown":    {query: "?from_index=3000&limit=1", want: answer{200, 1, 1}},
		"the client has what is known":                {query: "?from_index=2900", tag: tag(2900, 100), want: answer{304, 0, 0}},
		"the client has what another relay has shown": {query: "?from_index=2900", tag: tag(2900, 102), want: answer{304, 0, 1}},
		"the position is too old":                     {query: "?from_index=10&limit=100", age: 101 * time.Millisecond, want: answer{200, 100, 1}},
		"the clock was set back":                      {query: "?from_index=10&limit=100", age: -time.Second, want: answer{200, 100, 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, reads, clock := publishedLeaves(before), 0, now
			position := func(leaves uint64) func() (commitments.Position, error) {
				return func() (commitments.Position, error) {
					reads++
					return commitments.Position{Leaves: leaves, Published: leaves, Generation: 1}, nil
				}
			}
			d.position = position(before)
			f := newFixture(t, d, func(o *httpapi.Options) { o.Now = func() time.Time { return clock } })
			f.do(t, get("/commitments"))
			*d = *publishedLeaves(after)
			d.position = position(after)
			reads, clock = 0, clock.Add(tt.age)
			r := get("/commitments" + tt.query)
			if tt.tag != "" {
				r.Header.Set("If-None-Match", tt.tag)
			}
			resp, body := f.do(t, r)
			got := answer{status: resp.StatusCode, reads: reads}
			if resp.StatusCode == http.StatusOK {
				leaves, _ := object(t, body)["commitments"].([]any)
				got.leaves = len(leaves)
			}
			if diff := cmp.Diff(got, tt.want, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestKnownPositionAfterARewind reads a page whose leaves were not read before the rewind.
func TestKnownPositionAfterARewind(t *testing.T) {
	t.Parallel()
	d, generation := publishedLeaves(3000), uint64(1)
	inner := d.read
	d.position = func() (commitments.Position, error) {
		return commitments.Position{Leaves: 3000, Published: 3000, Generation: generation}, nil
	}
	d.read = func(of, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
		if of != generation {
			return nil, commitments.ErrMoved
		}
		return inner(1, from, limit)
	}
	f := newFixture(t, d)
	f.do(t, get("/commitments?from_index=2999"))
	generation = 2
	resp, body := f.do(t, get("/commitments?from_index=0&limit=10"))
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Etag")[:3] != `"2-` || object(t, body)["count"] != 10.0 {
		t.Errorf("answered %d with the tag %s, want ten leaves of the second generation", resp.StatusCode, resp.Header.Get("Etag"))
	}
}
