package crowd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/throughput/crowd"
	"github.com/relaypool/relaypool/relay/openapi"
)

func TestInsistRepeatsWhatIsRefusedForTheMoment(t *testing.T) {
	t.Parallel()
	answers := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusOK, http.StatusBadRequest}
	r := &relay{t: t, answer: func(n int) (int, string) { return answers[n], "" }}
	c := newCrowd(t, r)
	bodies := prepare(t, c, 2)
	c.Insist(t.Context(), 1, 0, crowd.SourceOf(bodies))
	var got []int
	for _, sent := range r.all() {
		got = append(got, slices.IndexFunc(bodies, func(b []byte) bool { return string(b) == sent.raw }))
	}
	if diff := cmp.Diff(got, []int{0, 0, 0, 1}); diff != "" {
		t.Errorf("requests in order (-got +want):\n%s", diff)
	}
}

// respond answers requests without a network, so that time need not pass.
type respond http.HandlerFunc

func (f respond) RoundTrip(q *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f(w, q)
	return w.Result(), nil
}

func TestReadTakesTurnsAndCountsFailures(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Relays = []string{"http://relay"}
	synctest.Test(t, func(t *testing.T) {
		c, err := crowd.New(o)
		if err != nil {
			t.Fatal(err)
		}
		c.HTTP.Transport = respond(func(w http.ResponseWriter, q *http.Request) {
			time.Sleep(3 * time.Millisecond) // longer than a turn
			if q.URL.Path == "/b" {
				w.WriteHeader(http.StatusNotFound)
			}
		})
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		took, failed := c.Read(ctx, 100, "/a", "/b")
		answers := slices.Repeat([]time.Duration{3 * time.Millisecond}, 10)
		if diff := cmp.Diff(took, map[string][]time.Duration{"/a": answers, "/b": answers}); diff != "" || failed != 10 {
			t.Errorf("%d failed, want the 10 of /b; answers (-got +want):\n%s", failed, diff)
		}
	})
}

func TestForgeKeepsEverythingButTheProof(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, &relay{t: t, answer: accepting})
	bodies := prepare(t, c, 2)
	forged, err := crowd.Forge(bodies[0], bodies[1])
	if err != nil {
		t.Fatal(err)
	}
	var requests [3]openapi.TransactRequest
	for i, body := range [][]byte{bodies[0], bodies[1], forged} {
		if err := json.Unmarshal(body, &requests[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(requests[2].ProofBytes, requests[1].ProofBytes) || bytes.Equal(requests[0].ProofBytes, requests[1].ProofBytes) {
		t.Error("the forged request does not have the other's proof")
	}
	requests[2].ProofBytes = requests[0].ProofBytes
	if diff := cmp.Diff(requests[2], requests[0]); diff != "" {
		t.Errorf("the rest of the request (-got +want):\n%s", diff)
	}
}
