package crowd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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

func TestInsistWaitsAsLongAsRetryAfterSays(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Relays = []string{"http://relay"}
	bodies := prepare(t, newCrowd(t, &relay{t: t, answer: accepting}), 1)
	synctest.Test(t, func(t *testing.T) {
		c, err := crowd.New(o)
		if err != nil {
			t.Fatal(err)
		}
		began, after := time.Now(), time.Duration(0)
		c.HTTP.Transport = respond(func(w http.ResponseWriter, _ *http.Request) {
			if after = time.Since(began); after < 4*time.Second {
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, `{"request_id":"00000000-0000-0000-0000-00000000000a"}`)
		})
		c.Insist(t.Context(), 1, 0, crowd.SourceOf(bodies))
		if after != 4*time.Second {
			t.Errorf("the last request came after %s, want 4s", after)
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
