package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

func TestPagesOfCommitments(t *testing.T) {
	t.Parallel()
	const leaves = 102_500 // many full chunks and a partial last one
	tests := map[string]struct {
		query     string
		wantFrom  uint64
		wantCount int
		wantCode  string
	}{
		"the default limit":                            {query: "", wantCount: 100_000},
		"from an index":                                {query: "?from_index=5&limit=7", wantFrom: 5, wantCount: 7},
		"by the older parameter name":                  {query: "?fromIndex=5&limit=1", wantFrom: 5, wantCount: 1},
		"by both names with one value":                 {query: "?fromIndex=5&from_index=5&limit=2", wantFrom: 5, wantCount: 2},
		"a limit above the maximum is lowered":         {query: "?limit=9999999999", wantCount: 100_000},
		"across the end of a chunk":                    {query: "?from_index=980&limit=50", wantFrom: 980, wantCount: 50},
		"exactly one chunk":                            {query: "?from_index=1000&limit=1000", wantFrom: 1000, wantCount: 1000},
		"to the end of the list":                       {query: "?from_index=102300", wantFrom: 102_300, wantCount: 200},
		"the last leaf":                                {query: "?from_index=102499", wantFrom: 102_499, wantCount: 1},
		"one past the last leaf":                       {query: "?from_index=102500", wantFrom: 102_500, wantCount: 0},
		"far past the last leaf":                       {query: "?from_index=9223372036854775807", wantFrom: 1 << 62, wantCount: 0},
		"both names with different values":             {query: "?fromIndex=5&from_index=6", wantCode: "invalid_request"},
		"a negative index":                             {query: "?from_index=-1", wantCode: "invalid_request"},
		"a negative index by the older parameter name": {query: "?fromIndex=-1", wantCode: "invalid_request"},
		"an index that is not a number":                {query: "?from_index=one", wantCode: "invalid_request"},
		"an index beyond 64 bits":                      {query: "?from_index=99999999999999999999", wantCode: "invalid_request"},
		"an index with a fraction":                     {query: "?from_index=1.5", wantCode: "invalid_request"},
		"a limit of zero":                              {query: "?limit=0", wantCode: "invalid_request"},
		"a limit that is not a number":                 {query: "?limit=all", wantCode: "invalid_request"},
		"a mint that the pool does not have":           {query: "?mint=EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", wantCode: "unknown_mint"},
		"a mint that is not an address":                {query: "?mint=dollars", wantCode: "unknown_mint"},
		"a mint in another letter case":                {query: "?mint=so11111111111111111111111111111111111111112", wantCode: "unknown_mint"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := httptest.NewRecorder()
			newFixture(t, publishedLeaves(leaves)).handler.ServeHTTP(rec, get("/commitments"+tt.query))
			if tt.wantCode != "" {
				if code := object(t, rec.Body.Bytes())["code"]; code != tt.wantCode {
					t.Fatalf("code %v, want %s: %s", code, tt.wantCode, rec.Body)
				}
				return
			}
			if declared := rec.Header().Get("Content-Length"); declared != fmt.Sprint(rec.Body.Len()) {
				t.Errorf("Content-Length is %s, the body has %d bytes", declared, rec.Body.Len())
			}
			want := openapi.CommitmentList{Commitments: make([]openapi.Commitment, tt.wantCount), Count: tt.wantCount}
			for i := range want.Commitments {
				index := tt.wantFrom + uint64(i)
				want.Commitments[i] = openapi.Commitment{Commitment: fmt.Sprintf("%x", leafOf(index)), Index: int64(index)}
			}
			text, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(rec.Body.String(), "\n"); got != string(text) {
				t.Errorf("body (-want +got): %.300s", cmp.Diff(string(text), got))
			}
		})
	}
}

// TestChunksAreReadOnce: all readers of a list share one database read of each chunk.
func TestChunksAreReadOnce(t *testing.T) {
	t.Parallel()
	d := publishedLeaves(3*1000 + 10)
	var mu sync.Mutex
	read := map[uint64]int{}
	inner := d.read
	d.read = func(generation, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
		if limit > 1 {
			mu.Lock()
			read[from]++
			mu.Unlock()
		}
		return inner(generation, from, limit)
	}
	f := newFixture(t, d)
	for range 3 {
		f.do(t, get("/commitments"))
		f.do(t, get("/commitments?from_index=500&limit=100"))
	}
	if diff := cmp.Diff(map[uint64]int{0: 1, 999: 1, 1999: 1, 3000: 1}, read); diff != "" {
		t.Errorf("chunks read, by their first leaf (-want +got):\n%s", diff)
	}
}

func TestUnchangedListIsNotSentAgain(t *testing.T) {
	t.Parallel()
	d := publishedLeaves(2000)
	clock := now
	f := newFixture(t, d, func(o *httpapi.Options) { o.Now = func() time.Time { return clock } })
	resp, _ := f.do(t, get("/commitments?from_index=3"))
	tag := resp.Header.Get("Etag")
	requestWithTag := func(query, tag string) int {
		r := get("/commitments" + query)
		r.Header.Set("If-None-Match", tag)
		resp, body := f.do(t, r)
		if resp.StatusCode == http.StatusNotModified && (len(body) > 0 || resp.Header.Get("Etag") != tag) {
			t.Errorf("304 has a body of %d bytes and the tag %s, want no body and the tag of the request", len(body), resp.Header.Get("Etag"))
		}
		return resp.StatusCode
	}
	if got := requestWithTag("?from_index=3", tag); got != http.StatusNotModified {
		t.Errorf("unchanged list: status %d, want 304", got)
	}
	for _, header := range []string{"*", `"other", W/` + tag} {
		r := get("/commitments?from_index=3")
		r.Header.Set("If-None-Match", header)
		if resp, _ := f.do(t, r); resp.StatusCode != http.StatusNotModified {
			t.Errorf("If-None-Match %s: status %d, want 304", header, resp.StatusCode)
		}
	}
	if got := requestWithTag("?from_index=4", tag); got != http.StatusOK {
		t.Errorf("another list: status %d, want 200", got)
	}
	*d = *publishedLeaves(2001)
	clock = clock.Add(time.Second)
	if got := requestWithTag("?from_index=3", tag); got != http.StatusOK {
		t.Errorf("list with one more leaf: status %d, want 200", got)
	}
	inner := d.read
	*d = *publishedLeaves(2000)
	clock = clock.Add(time.Second)
	d.read = func(generation, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
		leaves, err := inner(generation, from, limit)
		if last := int(1999 - from); err == nil && last < len(leaves) {
			leaves[last].Commitment[0] = 0xEE // as after a restore of the database
		}
		return leaves, err
	}
	if got := requestWithTag("?from_index=3", tag); got != http.StatusOK {
		t.Errorf("list of the same length with another leaf: status %d, want 200", got)
	}
}

// TestListNeverMixesGenerations: the generation changes while a list is read.
func TestListNeverMixesGenerations(t *testing.T) {
	t.Parallel()
	generations := func(changesAt func(read int) bool) *domains {
		d := publishedLeaves(5000)
		var generation uint64 = 1
		var reads int
		inner := d.read
		d.position = func() (commitments.Position, error) {
			return commitments.Position{Leaves: 5000, Published: 5000, Generation: generation}, nil
		}
		d.read = func(of, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
			if reads++; changesAt(reads) {
				generation++
			}
			if of != generation {
				return nil, commitments.ErrMoved
			}
			return inner(1, from, limit)
		}
		return d
	}
	t.Run("before the first byte is sent, the list is read again", func(t *testing.T) {
		t.Parallel()
		resp, body := newFixture(t, generations(func(read int) bool { return read == 1 })).do(t, get("/commitments"))
		if resp.StatusCode != http.StatusOK || object(t, body)["count"] != 5000.0 {
			t.Errorf("answered %d with %.100s, want 200 with 5000 leaves", resp.StatusCode, body)
		}
	})
	t.Run("a generation that keeps changing is refused", func(t *testing.T) {
		t.Parallel()
		resp, body := newFixture(t, generations(func(int) bool { return true })).do(t, get("/commitments"))
		if resp.StatusCode != http.StatusServiceUnavailable || object(t, body)["code"] != string(refusal.ChainUnavailable) {
			t.Errorf("answered %d with %.100s, want 503 chain_unavailable", resp.StatusCode, body)
		}
	})
	t.Run("a short chunk is neither served as full nor cached", func(t *testing.T) {
		t.Parallel()
		d := publishedLeaves(5000)
		inner, short := d.read, true
		d.read = func(of, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
			out, err := inner(of, from, limit)
			if short && len(out) > 1 { // a rollback removed the rest after the position was read
				short, out = false, out[:len(out)-1]
			}
			return out, err
		}
		f := newFixture(t, d)
		for range 2 {
			resp, body := f.do(t, get("/commitments?limit=1000"))
			if leaves, ok := object(t, body)["commitments"].([]any); resp.StatusCode != http.StatusOK || !ok || len(leaves) != 1000 {
				t.Errorf("answered %d with %d leaves, want 1000", resp.StatusCode, len(leaves))
			}
		}
	})
	t.Run("after the first byte is sent, the response is cut off", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, generations(func(read int) bool { return read == 5 }))
		rec := httptest.NewRecorder()
		func() {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // the server compares so
					t.Errorf("the handler panics with %v, want that it breaks off the answer", v)
				}
			}()
			f.handler.ServeHTTP(rec, get("/commitments"))
		}()
		declared, err := strconv.Atoi(rec.Header().Get("Content-Length"))
		if err != nil || declared <= rec.Body.Len() || json.Valid(rec.Body.Bytes()) {
			t.Errorf("%d bytes are sent, Content-Length is %d (%v); want fewer bytes and invalid JSON", rec.Body.Len(), declared, err)
		}
		if !strings.Contains(f.log.String(), "another relay has moved") || strings.Contains(f.log.String(), `"level":"ERROR"`) {
			t.Errorf("the log lacks the change of generation, or has an error: %s", f.log)
		}
	})
	t.Run("an unreachable database answers 503", func(t *testing.T) {
		t.Parallel()
		d := publishedLeaves(5000)
		d.read = func(uint64, uint64, int) ([]commitments.IndexedCommitment, error) {
			return nil, refusal.New(refusal.DatabaseUnavailable, "no database")
		}
		if resp, _ := newFixture(t, d).do(t, get("/commitments")); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("answered %d, want 503", resp.StatusCode)
		}
	})
}

func TestHeadOfAListReadsOneChunk(t *testing.T) {
	t.Parallel()
	d := publishedLeaves(50_000)
	var reads int
	inner := d.read
	d.read = func(generation, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
		reads++
		return inner(generation, from, limit)
	}
	resp, body := newFixture(t, d).do(t, httptest.NewRequest(http.MethodHead, "/commitments", nil))
	if resp.StatusCode != http.StatusOK || len(body) > 0 || resp.Header.Get("Content-Length") == "" || reads > 2 {
		t.Errorf("answered %d with %d bytes, Content-Length %q, after %d reads; want 200, an empty body, a Content-Length and at most 2 reads", resp.StatusCode, len(body), resp.Header.Get("Content-Length"), reads)
	}
}

// deadlines records the deadline of each write. Writes fail after maxBytes bytes; 0 for no
// limit.
type deadlines struct {
	*httptest.ResponseRecorder
	set      []time.Time
	writes   []int
	maxBytes int
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

func (d *deadlines) Write(p []byte) (int, error) {
	d.writes = append(d.writes, len(d.set))
	if d.maxBytes > 0 && d.Body.Len() > d.maxBytes {
		return 0, errors.New("write tcp 203.0.113.7:51234: broken pipe")
	}
	return d.ResponseRecorder.Write(p)
}

// TestWritesOfAListHaveDeadlines: each part gets its own deadline. It is near enough
// to cut off a stalled reader, and not after the deadline of the whole response.
func TestWritesOfAListHaveDeadlines(t *testing.T) {
	t.Parallel()
	clock := now
	f := newFixture(t, publishedLeaves(100_000), func(o *httpapi.Options) {
		o.ListStall, o.ListTime = 10*time.Second, time.Minute
		o.Now = func() time.Time { clock = clock.Add(time.Second); return clock }
	})
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	began := clock
	f.handler.ServeHTTP(w, get("/commitments"))
	if len(w.set) < 49 || len(w.set) > len(w.writes) || w.writes[0] != 1 {
		t.Fatalf("%d writes have %d deadlines, the first of them after %v: want one for each part, before it is sent", len(w.writes), len(w.set), w.writes[:min(1, len(w.writes))])
	}
	latest := began
	for i, at := range w.set {
		if !slices.Contains(w.writes, i+1) {
			t.Fatalf("no write uses deadline %d", i+1)
		}
		if at.Before(latest) || at.After(began.Add(63*time.Second)) || at.After(began.Add(time.Duration(i+13)*time.Second)) {
			t.Errorf("write %d has its deadline %v after the start of the request", i+1, at.Sub(began))
		}
		latest = at
	}
}

func TestCutOffListIsNotLoggedAsAnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, publishedLeaves(100_000))
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // the server compares so
				t.Errorf("the handler panics with %v, want that it breaks off the answer", v)
			}
		}()
		f.handler.ServeHTTP(&deadlines{ResponseRecorder: httptest.NewRecorder(), maxBytes: 1 << 20}, get("/commitments"))
	}()
	log := f.log.String()
	if !strings.Contains(log, "sending a list response failed") || strings.Contains(log, "203.0.113.7") || strings.Contains(log, "ERROR") {
		t.Errorf("the log must report the cut-off without the client's address: %s", log)
	}
	if diff := cmp.Diff([]exchange{{http.MethodGet, "/commitments", http.StatusOK}}, f.observer.exchanges); diff != "" {
		t.Errorf("counted requests (-want +got):\n%s", diff)
	}
}
