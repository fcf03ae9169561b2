package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
)

const accepted = `"result":"1111111111111111111111111111111111111111111111111111111111111111"`

// batchNode answers batches as the test says and every other call with a signature.
type batchNode struct {
	*httptest.Server
	mu      sync.Mutex
	batches [][]string // the transactions of each batch
	alone   []string   // the transactions sent alone, in ascending order
}

func newBatchNode(t *testing.T, status int, answer func(ids []int) string) *batchNode {
	t.Helper()
	n := &batchNode{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		type call struct {
			ID     int   `json:"id"`
			Params []any `json:"params"`
		}
		var one call
		if json.Unmarshal(body, &one) == nil {
			n.mu.Lock()
			n.alone = append(n.alone, fmt.Sprint(one.Params[0]))
			slices.Sort(n.alone)
			n.mu.Unlock()
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,%s}`, one.ID, accepted)
			return
		}
		var calls []call
		if err := json.Unmarshal(body, &calls); err != nil {
			t.Errorf("neither a call nor a batch: %s", body)
		}
		var ids []int
		var transactions []string
		for _, c := range calls {
			ids, transactions = append(ids, c.ID), append(transactions, fmt.Sprint(c.Params[0]))
		}
		n.mu.Lock()
		n.batches = append(n.batches, transactions)
		n.mu.Unlock()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer(ids))
	}))
	t.Cleanup(n.Close)
	return n
}

// sendTogether makes one batch of the sends, and returns the outcome of each.
func sendTogether(t *testing.T, c *Client, transactions ...string) []string {
	t.Helper()
	calls := make([][]any, len(transactions))
	for i, tx := range transactions {
		calls[i] = []any{tx}
	}
	outcomes, err := c.sends.Run(t.Context(), calls)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(outcomes))
	for i, o := range outcomes {
		texts[i] = "accepted"
		if o != nil {
			texts[i] = o.Error()
		}
	}
	return texts
}

// perCall answers each call of a batch with one of the answers, the last call first.
func perCall(answers ...string) func([]int) string {
	return func(ids []int) string {
		var all []string
		for i, id := range slices.Backward(ids) {
			all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, id, answers[i]))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
}

func always(answer string) func([]int) string { return func([]int) string { return answer } }

func TestEachSendOfABatchHasItsOwnOutcome(t *testing.T) {
	t.Parallel()
	const refused = `"error":{"code":-32002,"message":"Transaction simulation failed","data":{"err":"AlreadyProcessed"}}`
	const busy = `"error":{"code":-32005,"message":"Node is behind by 50 slots"}`
	missing := "bad_response: the answer to a batch has none to this call"
	tests := map[string]struct {
		status  int
		answer  func([]int) string
		want    []string
		retried bool // each was sent alone
		pauses  bool // the next ones are
	}{
		"all accepted": {200, perCall(accepted, accepted), []string{"accepted", "accepted"}, false, false},
		"one refused":  {200, perCall(accepted, refused), []string{"accepted", "refuses the transaction: AlreadyProcessed"}, false, false},
		"one unknown":  {200, perCall(busy, accepted), []string{"node_behind: code -32005: Node is behind by 50 slots", "accepted"}, false, false},
		"no answer to one": {
			200, func(ids []int) string { return fmt.Sprintf(`[{"jsonrpc":"2.0","id":%d,%s}]`, ids[1], accepted) },
			[]string{missing, "accepted"}, false, false,
		},
		"cut off after one": {
			200, func(ids []int) string { return fmt.Sprintf(`[{"jsonrpc":"2.0","id":%d,%s},{"json`, ids[0], accepted) },
			[]string{"accepted", missing}, false, false,
		},
		"a result that is no signature": {
			200, perCall(accepted, `"result":{"a":[1]}`),
			[]string{"accepted", "is not what the method answers"}, false, false,
		},
		"an id that no call has": {200, always(`[{"jsonrpc":"2.0","id":3,` + accepted + `}]`), []string{"accepted", "accepted"}, true, true},
		"an empty array":         {200, always(`[]`), []string{"accepted", "accepted"}, true, true},
		"an error for the array": {200, always(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`), []string{"accepted", "accepted"}, true, true},
		"an array with an error": {200, always(`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches on this plan"}}]`), []string{"accepted", "accepted"}, true, true},
		"HTTP 403":               {403, always(`forbidden`), []string{"accepted", "accepted"}, true, true},
		"HTTP 413":               {413, always(`Payload too large`), []string{"accepted", "accepted"}, true, true},
		"HTTP 429":               {429, always(`slow down`), []string{"rate_limited: HTTP 429", "rate_limited: HTTP 429"}, false, true},
		"HTTP 500":               {500, always(`oops`), []string{"accepted", "accepted"}, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newBatchNode(t, test.status, test.answer)
			c := newClient(t, Options{URL: n.URL})
			got := sendTogether(t, c, "a", "b")
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("send %d: %s, want %s", i+1, got[i], want)
				}
			}
			wantAlone := []string(nil)
			if test.retried {
				wantAlone = []string{"a", "b"}
			}
			if diff := cmp.Diff(wantAlone, n.alone); diff != "" {
				t.Errorf("sent alone after the batch (-want +got):\n%s", diff)
			}
			sendTogether(t, c, "c", "d")
			if got := len(n.batches) == 1; got != test.pauses {
				t.Errorf("the next sends were made alone: %t, want %t", got, test.pauses)
			}
		})
	}
}

func TestBatchesAreTriedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	n := newBatchNode(t, 200, always(`[]`))
	c := newClient(t, Options{URL: n.URL})
	now := time.Unix(1000, 0)
	c.now = func() time.Time { return now }
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {batchPause - 1, 1}, {1, 2}} {
		now = now.Add(step.after)
		if sendTogether(t, c, "a", "b"); len(n.batches) != step.want {
			t.Errorf("%s later: %d batches, want %d", step.after, len(n.batches), step.want)
		}
	}
}

// TestSendsOfABatchDoNotShareAnError: callers add their endpoint's name to their errors.
func TestSendsOfABatchDoNotShareAnError(t *testing.T) {
	t.Parallel()
	n := newBatchNode(t, 429, always(``))
	outcomes, err := newClient(t, Options{URL: n.URL}).sends.Run(t.Context(), [][]any{{"a"}, {"b"}})
	if err != nil {
		t.Fatal(err)
	}
	var first, second *onchain.Unavailable
	if !errors.As(outcomes[0], &first) || !errors.As(outcomes[1], &second) || first == second {
		t.Errorf("outcomes %v and %v, want two errors of their own", outcomes[0], outcomes[1])
	}
}

// TestSendsThatAreReadyTogetherShareARequest: each gets its outcome, a send with preflight has a request
// of its own, and one whose caller gives up does not end the others.
func TestSendsThatAreReadyTogetherShareARequest(t *testing.T) {
	t.Parallel()
	n := newBatchNode(t, 200, func(ids []int) string {
		return perCall(slices.Repeat([]string{accepted}, len(ids))...)(ids)
	})
	c := newClient(t, Options{URL: n.URL})
	const sends = 64
	var all sync.WaitGroup
	for range sends {
		all.Go(func() {
			if err := c.Send(t.Context(), []byte{1}, false, 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Send(ctx, []byte{2}, false, 0); onchain.KindOf(err) != onchain.KindCancelled {
			t.Errorf("a send whose caller gave up: %v, want %s", err, onchain.KindCancelled)
		}
	})
	all.Wait()
	preflight := len(n.alone)
	if err := c.Send(t.Context(), []byte{1}, true, 0); err != nil || len(n.alone) != preflight+1 {
		t.Errorf("with preflight: error %v, %d requests of their own, want %d", err, len(n.alone), preflight+1)
	}
	total := preflight
	for _, b := range n.batches {
		if total += len(b); len(b) > maxBatch {
			t.Errorf("a batch of %d, want at most %d", len(b), maxBatch)
		}
	}
	if total < sends || len(n.batches) == 0 {
		t.Errorf("%d transactions in %d batches, want at least %d and 1", total, len(n.batches), sends)
	}
}
