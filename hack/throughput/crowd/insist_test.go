package crowd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

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

func TestReadTakesTurnsAndCountsFailures(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reads atomic.Int64
	c := newCrowd(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/b" {
			w.WriteHeader(http.StatusNotFound)
		}
		if reads.Add(1) == 40 {
			stop()
		}
		fmt.Fprint(w, "x")
	}))
	took, failed := c.Read(ctx, 1000, "/a", "/b")
	if len(took["/a"]) == 0 || len(took["/b"]) == 0 || failed != len(took["/b"]) {
		t.Errorf("%d and %d answers, %d failed; want some of each, and every second to fail", len(took["/a"]), len(took["/b"]), failed)
	}
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
