package rpc

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	accepted = `"result":"1111111111111111111111111111111111111111111111111111111111111111"`
	unsigned = `"error":{"code":-32003,"message":"Transaction signature verification failure"}`
	refused  = `"error":{"code":-32602,"message":"Invalid params"}`
)

// sentCall is a send as a batchNode receives it.
type sentCall struct {
	ID     int   `json:"id"`
	Params []any `json:"params"`
}

// answer answers the call.
func (c sentCall) answer(outcome string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, c.ID, outcome)
}

// batchNode answers batches by batch, and calls that come alone by alone.
type batchNode struct {
	*httptest.Server
	batch func(http.ResponseWriter, *http.Request, []sentCall)
	alone func(http.ResponseWriter, *http.Request, sentCall)

	returned chan struct{} // gets a value for each of the sends of together that has returned

	mu           sync.Mutex
	batches, one int
	largest      int
}

func newBatchNode(t *testing.T, batch func(http.ResponseWriter, *http.Request, []sentCall)) *batchNode {
	t.Helper()
	n := &batchNode{batch: batch, returned: make(chan struct{}, 100), alone: func(w http.ResponseWriter, _ *http.Request, c sentCall) {
		_, _ = io.WriteString(w, c.answer(accepted))
	}}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var call sentCall
		if json.Unmarshal(body, &call) == nil {
			n.count(func() { n.one++ })
			n.alone(w, r, call)
			return
		}
		var calls []sentCall
		if err := json.Unmarshal(body, &calls); err != nil {
			t.Errorf("neither a call nor a batch: %s", body)
		}
		n.count(func() { n.batches, n.largest = n.batches+1, max(n.largest, len(calls)) })
		n.batch(w, r, calls)
	}))
	t.Cleanup(n.Close)
	return n
}

func (n *batchNode) count(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *batchNode) counts() (batches, alone int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.batches, n.one
}

// perCall answers each call of a batch with one of the answers, the last call first.
func perCall(outcomes ...string) func(http.ResponseWriter, *http.Request, []sentCall) {
	return func(w http.ResponseWriter, _ *http.Request, calls []sentCall) {
		var all []string
		for i, c := range slices.Backward(calls) {
			all = append(all, c.answer(outcomes[i]))
		}
		_, _ = io.WriteString(w, "["+strings.Join(all, ",")+"]")
	}
}

// always answers a batch with a status and a body.
func always(status int, body string) func(http.ResponseWriter, *http.Request, []sentCall) {
	return func(w http.ResponseWriter, _ *http.Request, _ []sentCall) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// together makes sends of the transactions 1, 2 and so on by one batch, which waits for a request before it.
func together(t *testing.T, c *Client, n *batchNode, contexts ...context.Context) []error {
	t.Helper()
	q := &c.sends.queue
	q.Runners, q.Stall = 1, 0
	run, arrived, release := q.Run, make(chan struct{}), make(chan struct{})
	var before atomic.Bool
	q.Run = func(ctx context.Context, calls []*waitingSend) ([]sent, error) {
		if before.Swap(true) {
			return run(ctx, calls)
		}
		close(arrived)
		<-release
		return make([]sent, len(calls)), nil
	}
	var all sync.WaitGroup
	all.Go(func() { _, _ = q.Do(t.Context(), &waitingSend{}) })
	<-arrived
	outcomes := make([]error, len(contexts))
	for i, ctx := range contexts {
		all.Go(func() {
			outcomes[i] = c.Send(ctx, []byte{byte(i + 1)}, false, 0)
			n.returned <- struct{}{}
		})
		for began := time.Now(); q.Waiting() <= i; time.Sleep(time.Millisecond) {
			if time.Since(began) > 20*time.Second {
				close(release)
				t.Fatal("the send does not wait for a request")
			}
		}
	}
	close(release)
	all.Wait()
	return outcomes
}

// describe returns the kinds of outcomes, and "shared" with those that another one tells of.
func describe(outcomes []error) (all []string) {
	for _, err := range outcomes {
		text := ClassOf(err)
		var u *onchain.Unavailable
		if errors.As(err, &u) && u.Shared {
			text += ", shared"
		}
		if u != nil && u.RetryAfter > 0 {
			text += ", " + u.RetryAfter.String()
		}
		all = append(all, text)
	}
	return all
}

func TestEachSendOfABatchHasItsOwnOutcome(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request, _ []sentCall) { <-r.Context().Done() }
	cut := func(w http.ResponseWriter, _ *http.Request, calls []sentCall) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "["+calls[0].answer(accepted)+",")
	}
	first := func(outcomes ...string) func(http.ResponseWriter, *http.Request, []sentCall) {
		return func(w http.ResponseWriter, _ *http.Request, calls []sentCall) {
			var all []string
			for _, o := range outcomes {
				all = append(all, calls[0].answer(o))
			}
			_, _ = io.WriteString(w, "["+strings.Join(all, ",")+"]")
		}
	}
	const ok, busy = "ok", `"error":{"code":429,"message":"slow down"}`
	tests := map[string]struct {
		batch func(http.ResponseWriter, *http.Request, []sentCall)
		// alone is the outcome of a send that is repeated alone; empty for accepted.
		alone  string
		want   []string
		alones int  // sends that are repeated alone
		pauses bool // further sends are made alone
	}{
		"both accepted":                                 {perCall(accepted, accepted), "", []string{ok, ok}, 0, false},
		"one refused for good":                          {perCall(accepted, unsigned), "", []string{ok, "preflight"}, 0, false},
		"one told to come back":                         {perCall(busy, accepted), "", []string{"rate_limited", ok}, 0, false},
		"no answer to one":                              {first(accepted), "", []string{ok, ok}, 1, true},
		"two answers to one":                            {first(accepted, unsigned), "", []string{ok, ok}, 2, true},
		"a result of another kind":                      {perCall(`"result":{"a":[1]}`, accepted), "", []string{ok, ok}, 1, true},
		"an error of another kind":                      {perCall(`"error":"no"`, accepted), "", []string{ok, ok}, 1, true},
		"an id that no call has":                        {always(200, `[{"jsonrpc":"2.0","id":3,`+accepted+`}]`), "", []string{ok, ok}, 2, true},
		"an id that is a text":                          {always(200, `[{"jsonrpc":"2.0","id":"1",`+accepted+`}]`), "", []string{ok, ok}, 2, true},
		"an empty array":                                {always(200, `[]`), "", []string{ok, ok}, 2, true},
		"an array of arrays":                            {always(200, `[[1],2]`), "", []string{ok, ok}, 2, true},
		"an array and more":                             {always(200, `[] []`), "", []string{ok, ok}, 2, true},
		"an error for the array":                        {always(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`), "", []string{ok, ok}, 2, true},
		"no batches, told to each":                      {perCall(refused, refused), "", []string{ok, ok}, 2, true},
		"refused in it and alone":                       {perCall(accepted, refused), refused, []string{ok, "refused"}, 1, true},
		"refused alone, after the batch may have acted": {always(200, `{}`), unsigned, []string{"bad_response, 7s", "bad_response, shared, 7s"}, 2, true},
		"HTTP 403":                                      {always(403, `forbidden`), "", []string{ok, ok}, 2, true},
		"HTTP 413":                                      {always(413, `Payload too large`), "", []string{ok, ok}, 2, true},
		"HTTP 429":                                      {always(429, `slow down`), "", []string{"rate_limited, 7s", "rate_limited, shared, 7s"}, 0, false},
		"HTTP 500":                                      {always(500, `oops`), "", []string{"server_error, 7s", "server_error, shared, 7s"}, 0, true},
		"told to come back, for the array":              {always(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32429,"message":"slow down"}}`), "", []string{"rate_limited, 7s", "rate_limited, shared, 7s"}, 0, false},
		"a cut connection":                              {cut, "", []string{"connection", "connection, shared"}, 0, true},
		"no answer in time":                             {hang, "", []string{"timeout", "timeout, shared"}, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newBatchNode(t, test.batch)
			n.alone = func(w http.ResponseWriter, _ *http.Request, c sentCall) {
				_, _ = io.WriteString(w, c.answer(cmp.Or(test.alone, accepted)))
			}
			c := newClient(t, Options{URL: n.URL, Batches: true})
			if strings.Contains(name, "in time") {
				c.timeout = 100 * time.Millisecond
			}
			got := describe(together(t, c, n, t.Context(), t.Context()))
			slices.Sort(got) // of those that failed together, any one is not shared
			slices.Sort(test.want)
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if batches, alone := n.counts(); batches != 1 || alone != test.alones {
				t.Errorf("%d batches and %d sends alone, want 1 and %d", batches, alone, test.alones)
			}
			if got := c.sends.paused(); got != test.pauses {
				t.Errorf("further sends are made alone: %t, want %t", got, test.pauses)
			}
		})
	}
}

func TestBatchesAreTriedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	n := newBatchNode(t, always(200, `[]`))
	c := newClient(t, Options{URL: n.URL, Batches: true})
	now := time.Unix(1000, 0)
	c.now = func() time.Time { return now }
	together(t, c, n, t.Context(), t.Context())
	for wait, want := range map[time.Duration]bool{0: true, batchPause - 1: true, batchPause: false} {
		now = time.Unix(1000, 0).Add(wait)
		if got := c.sends.paused(); got != want {
			t.Errorf("after %s sends are made alone: %t, want %t", wait, got, want)
		}
	}
}

// TestACallerThatGivesUpEndsNoOtherSend: its transaction may land, since the batch goes on.
func TestACallerThatGivesUpEndsNoOtherSend(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	n := newBatchNode(t, nil)
	n.batch = func(w http.ResponseWriter, r *http.Request, calls []sentCall) {
		leave()
		<-n.returned
		perCall(accepted, accepted)(w, r, calls)
	}
	c := newClient(t, Options{URL: n.URL, Batches: true})
	if diff := gocmp.Diff([]string{onchain.KindCancelled, "ok"}, describe(together(t, c, n, ctx, t.Context()))); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// TestTheLimitOfAllCallersIsOneTimeout: callers leave the batch before the endpoint's time is up.
func TestTheLimitOfAllCallersIsOneTimeout(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	n := newBatchNode(t, func(_ http.ResponseWriter, r *http.Request, _ []sentCall) {
		cancel(ErrLimit)
		<-r.Context().Done()
	})
	c := newClient(t, Options{URL: n.URL, Batches: true})
	got := describe(together(t, c, n, ctx, ctx, ctx))
	slices.Sort(got)
	if diff := gocmp.Diff([]string{"timeout", "timeout, shared", "timeout, shared"}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if batches, _ := n.counts(); batches != 1 {
		t.Errorf("%d batches, want 1", batches)
	}
}

// TestABatchThatEndsWithItsCallersIsATimeout: its own context does not say why it ended.
func TestABatchThatEndsWithItsCallersIsATimeout(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{URL: "http://localhost", Batches: true})
	ctx, cancel := context.WithCancelCause(t.Context())
	c.sends.queue.Run = func(_ context.Context, calls []*waitingSend) ([]sent, error) {
		time.AfterFunc(20*time.Millisecond, func() { cancel(ErrLimit) })
		return slices.Repeat([]sent{{err: &onchain.Unavailable{Kind: onchain.KindCancelled}}}, len(calls)), nil
	}
	if err := c.Send(ctx, []byte{1}, false, 0); onchain.KindOf(err) != onchain.KindTimeout {
		t.Errorf("error %v, want %s", err, onchain.KindTimeout)
	}
}

// TestWithoutBudgetForARepeatTheOutcomeIsThatOfTheBatch: the transaction may land.
func TestWithoutBudgetForARepeatTheOutcomeIsThatOfTheBatch(t *testing.T) {
	t.Parallel()
	n := newBatchNode(t, always(200, `{}`))
	c := newClient(t, Options{URL: n.URL, Batches: true})
	var passed atomic.Int64
	gated := c.Gated(func(context.Context) error {
		if passed.Add(1) > 2 {
			return errors.New("the budget is exhausted")
		}
		return nil
	})
	for _, err := range together(t, gated, n, t.Context(), t.Context()) {
		if onchain.KindOf(err) != onchain.KindBadResponse {
			t.Errorf("error %v, want %s", err, onchain.KindBadResponse)
		}
	}
	if got := passed.Load(); got != 4 {
		t.Errorf("the budget was asked %d times, want once for each send and each repeat", got)
	}
}

// TestOneBatchTriesAfterAPause: until it has succeeded, other sends are made alone.
func TestOneBatchTriesAfterAPause(t *testing.T) {
	t.Parallel()
	n := newBatchNode(t, nil)
	c := newClient(t, Options{URL: n.URL, Batches: true})
	two := []*waitingSend{{params: []any{"a"}}, {params: []any{"b"}}}
	n.batch = func(w http.ResponseWriter, r *http.Request, calls []sentCall) {
		other, err := c.sends.run(r.Context(), two)
		if err != nil || !c.sends.paused() || !other[0].alone || !other[1].alone {
			t.Errorf("while a batch tries, another has the outcomes %+v (%v), want that both are made alone", other, err)
		}
		perCall(accepted, accepted)(w, r, calls)
	}
	c.sends.until.Store(1) // long ago
	if out, err := c.sends.run(t.Context(), two); err != nil || out[0] != (sent{}) || out[1] != (sent{}) {
		t.Errorf("the batch that tries has the outcomes %+v (%v), want two accepted", out, err)
	}
	if c.sends.paused() || c.sends.until.Load() != 0 {
		t.Error("batches are paused after one has succeeded")
	}
}

// TestSendsThatAreReadyTogetherShareARequest: each has its outcome. Those with preflight, and those of a
// client without batches, have requests of their own.
func TestSendsThatAreReadyTogetherShareARequest(t *testing.T) {
	t.Parallel()
	n := newBatchNode(t, func(w http.ResponseWriter, r *http.Request, calls []sentCall) {
		outcomes := make([]string, len(calls))
		for i, c := range calls {
			outcomes[i] = accepted
			if c.Params[0] == base64.StdEncoding.EncodeToString([]byte{7}) {
				outcomes[i] = unsigned
			}
		}
		perCall(outcomes...)(w, r, calls)
	})
	c := newClient(t, Options{URL: n.URL, Batches: true})
	contexts := slices.Repeat([]context.Context{t.Context()}, 20)
	for i, err := range together(t, c, n, contexts...) {
		if want := i+1 == 7; (ClassOf(err) == "preflight") != want || err == nil == want {
			t.Errorf("send %d: %v, want refused: %t", i+1, err, want)
		}
	}
	if batches, alone := n.counts(); batches != 3 || alone != 0 || n.largest != maxBatch {
		t.Errorf("20 sends: %d batches, the largest of %d, and %d alone; want 3, %d and 0", batches, n.largest, alone, maxBatch)
	}
	if err := c.Send(t.Context(), []byte{1}, true, 0); err != nil {
		t.Error(err)
	}
	if err := newClient(t, Options{URL: n.URL}).Send(t.Context(), []byte{1}, false, 0); err != nil {
		t.Error(err)
	}
	if batches, alone := n.counts(); batches != 3 || alone != 2 {
		t.Errorf("then %d batches and %d alone, want 3 and 2", batches, alone)
	}
}
