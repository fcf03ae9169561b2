package crowd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/throughput/crowd"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// relay is a fake relay that records requests. Each query of the root returns the next number.
type relay struct {
	t      *testing.T
	answer func(n int) (status int, code string)
	// statusBody returns the body of the nth answer to GET /status.
	statusBody func(n int) string

	mu       sync.Mutex
	roots    int
	received []received
	polls    int
}

type received struct {
	root         [32]byte
	path, prefer string
	raw          string
}

func (r *relay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.URL.Path == "/merkle-root" {
		r.roots++
		fmt.Fprintf(w, `{"root":"%064x","merkle_tree":"x","next_index":1,"slot":1}`, r.roots)
		return
	}
	if strings.HasPrefix(q.URL.Path, "/status/") {
		r.polls++
		fmt.Fprint(w, r.statusBody(r.polls-1))
		return
	}
	raw, err := io.ReadAll(q.Body)
	if err != nil {
		return // the client was stopped
	}
	var body openapi.TransactRequest
	if err := json.Unmarshal(raw, &body); err != nil {
		r.t.Errorf("a submission does not parse: %v", err)
	}
	in, err := shieldpool.ParsePublicInputs(body.PublicInputs)
	if err != nil {
		r.t.Errorf("public inputs: %v", err)
		return
	}
	r.received = append(r.received, received{in.Root, q.URL.Path, q.Header.Get("Prefer"), string(raw)})
	status, code := r.answer(len(r.received) - 1)
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%q,"request_id":"00000000-0000-0000-0000-00000000000a"}`, code)
}

func (r *relay) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

func accepting(int) (status int, code string) { return http.StatusOK, "" }

func options(t *testing.T, handlers ...http.Handler) load.Options {
	t.Helper()
	key, err := os.ReadFile("../../circuit/verification_key.json")
	if err != nil {
		t.Fatal(err)
	}
	prover, err := simulator.New(key, simulator.DevelopmentSeed)
	if err != nil {
		t.Fatal(err)
	}
	o := load.Options{Simulator: prover, Mint: shieldpool.Development().Mints[0], Seed: 1, Now: time.Now}
	for _, handler := range handlers {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		o.Relays = append(o.Relays, server.URL)
	}
	return o
}

func newCrowd(t *testing.T, handlers ...http.Handler) *crowd.Crowd {
	t.Helper()
	c, err := crowd.New(options(t, handlers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func prepare(t *testing.T, c *crowd.Crowd, n int) [][]byte {
	t.Helper()
	bodies, err := c.Prepare(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return bodies
}

// statuses counts answers by status and code.
func statuses(calls []load.Answer) map[string]int {
	out := make(map[string]int)
	for i := range calls {
		out[fmt.Sprint(calls[i].Status, calls[i].Code)]++
	}
	return out
}

func TestPreparedRequestsDifferAndShareOneRoot(t *testing.T) {
	t.Parallel()
	r := &relay{t: t, answer: accepting}
	c := newCrowd(t, r)
	c.Steady(t.Context(), 10_000, prepare(t, c, 30))
	different := make(map[string]bool)
	for _, got := range r.all() {
		different[got.raw] = true
		if want := ([32]byte{31: 1}); got.root != want {
			t.Errorf("root %x, want the root at the time of Prepare, %x", got.root, want)
		}
	}
	if len(different) != 30 {
		t.Errorf("%d different requests, want 30", len(different))
	}
	if diff := cmp.Diff(statuses(c.Calls()), map[string]int{"200": 30}); diff != "" {
		t.Errorf("answers (-got +want):\n%s", diff)
	}
	if left := c.Calls(); len(left) != 0 {
		t.Errorf("Calls returns %d calls a second time, want none", len(left))
	}
}

func TestFloodSendsEachRequestOnceInRotation(t *testing.T) {
	t.Parallel()
	first, second := &relay{t: t, answer: accepting}, &relay{t: t, answer: accepting}
	c := newCrowd(t, first, second)
	c.Flood(t.Context(), 4, time.Millisecond, "respond-async", crowd.SourceOf(prepare(t, c, 20)))
	if a, b := len(first.all()), len(second.all()); a != 10 || b != 10 {
		t.Errorf("the relays received %d and %d, want 10 each", a, b)
	}
	for _, got := range first.all() {
		if got.prefer != "respond-async" {
			t.Errorf("Prefer is %q, want respond-async", got.prefer)
		}
	}
}

func TestFloodEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	r := &relay{t: t, answer: func(n int) (int, string) {
		if n == 5 {
			stop()
		}
		return http.StatusOK, ""
	}}
	c := newCrowd(t, r)
	c.Flood(ctx, 1, 0, "", crowd.SourceOf(prepare(t, c, 100)))
	if n := len(r.all()); n != 6 {
		t.Errorf("%d requests were sent, want 6", n)
	}
}

func TestStreamProvesAgainstNewRootsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := &relay{t: t}
	r.answer = func(n int) (int, string) {
		if r.received[n].root == ([32]byte{31: 2}) {
			stop()
		}
		return http.StatusOK, ""
	}
	c := newCrowd(t, r)
	c.Flood(ctx, 2, 0, "", c.Stream(ctx))
	different, roots := make(map[string]bool), make(map[[32]byte]bool)
	for _, got := range r.all() {
		different[got.raw], roots[got.root] = true, true
	}
	if len(different) != len(r.all()) {
		t.Errorf("%d different requests of %d, want all", len(different), len(r.all()))
	}
	if !roots[[32]byte{31: 1}] || !roots[[32]byte{31: 2}] || len(roots) > 3 {
		t.Errorf("proven against %d roots; want the first two, and at most three", len(roots))
	}
}

func TestProveAnewProvesAgainstTheNewestRoot(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := &relay{t: t, answer: func(n int) (int, string) {
		switch n {
		case 0:
			return http.StatusBadRequest, "root_not_found"
		case 1:
			return http.StatusServiceUnavailable, "pool_busy"
		case 2:
			stop()
		}
		return http.StatusOK, ""
	}}
	c := newCrowd(t, r)
	c.ProveAnew(ctx, 1, 0)
	var roots [][32]byte
	for _, got := range r.all() {
		roots = append(roots, got.root)
	}
	if diff := cmp.Diff(roots, [][32]byte{{31: 1}, {31: 2}, {31: 3}}); diff != "" {
		t.Errorf("roots (-got +want):\n%s", diff)
	}
	got := statuses(c.Calls())
	delete(got, "0") // the last request may be cancelled
	delete(got, "200")
	if diff := cmp.Diff(got, map[string]int{"400root_not_found": 1, "503pool_busy": 1}); diff != "" {
		t.Errorf("refusals (-got +want):\n%s", diff)
	}
}

func TestPrepareFailsWithoutARoot(t *testing.T) {
	t.Parallel()
	tests := map[string]http.HandlerFunc{
		"status 503":               func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"not JSON":                 func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") },
		"a root that is too short": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"root":"00"}`) },
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := newCrowd(t, handler).Prepare(t.Context(), 1); err == nil {
				t.Error("no error, want one")
			}
		})
	}
}

func TestNewRequiresOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*load.Options){
		"no relays":    func(o *load.Options) { o.Relays = nil },
		"no simulator": func(o *load.Options) { o.Simulator = nil },
		"no clock":     func(o *load.Options) { o.Now = nil },
		"no mint":      func(o *load.Options) { o.Mint = shieldpool.Mint{} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, http.NotFoundHandler())
			change(&o)
			if _, err := crowd.New(o); err == nil {
				t.Error("no error, want one")
			}
		})
	}
}
