package rpc

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/batch"
	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// maxBatch keeps a batch of transactions of 4096 bytes below Agave's limit on a request, 50 KiB.
	maxBatch = 8
	// concurrentBatches is high and maxBatchWait short, so that no send waits for the answer to another:
	// only those that are ready at the same moment share a request.
	concurrentBatches = 256
	maxBatchWait      = 20 * time.Millisecond
	// batchPause is how long sends are made alone after an endpoint has failed with a batch: it may take none.
	batchPause = time.Minute
)

// sendBatches makes sends without preflight that are ready at the same moment by one request, a JSON-RPC
// batch. Other calls are not made so: the endpoint may answer a batch's calls one after the other, and sends
// without preflight are quick. They may also be repeated, if the endpoint takes no batches.
type sendBatches struct {
	client *Client
	queue  batch.Queue[*waitingSend, sent]
	// until is when a batch may be tried again, in nanoseconds; 0 while batches succeed.
	until atomic.Int64
}

// waitingSend is a send that waits for its request. batch is set when others share the request.
type waitingSend struct {
	params []any
	batch  atomic.Pointer[sharedRequest]
}

// sharedRequest is the request of a batch. told is true when a caller has been told that it failed.
type sharedRequest struct{ told atomic.Bool }

// sent is the outcome of a send. whole is true if the request failed, so that all its sends have this outcome.
// With alone, nothing was sent, and the caller has to make a request of its own.
type sent struct {
	err          error
	whole, alone bool
}

func newSendBatches(c *Client) *sendBatches {
	s := &sendBatches{client: c}
	s.queue = batch.Queue[*waitingSend, sent]{Runners: concurrentBatches, Limit: maxBatch, Stall: maxBatchWait, Run: s.run}
	return s
}

// paused reports whether sends are made alone now.
func (s *sendBatches) paused() bool { return s.client.now().UnixNano() < s.until.Load() }

// send makes a send by a request of its own, or with others that are ready.
func (s *sendBatches) send(ctx context.Context, params []any) (batched bool, err error) {
	alone := func() error { return s.client.attempt(ctx, methodSend, params, decodeSignature) }
	if s.paused() {
		return false, alone()
	}
	call := &waitingSend{params: params}
	out, err := s.queue.Do(ctx, call)
	switch {
	case err != nil || onchain.KindOf(out.err) == onchain.KindCancelled:
		<-ctx.Done() // a batch ends early only when all its callers have left
		out = sent{err: Ended(ctx, methodSend), whole: true}
	case out.alone:
		return false, alone()
	}
	shared := call.batch.Load()
	var u *onchain.Unavailable
	if shared != nil && out.whole && errors.As(out.err, &u) && u.Kind != onchain.KindCancelled {
		u.Shared = shared.told.Swap(true)
	}
	return shared != nil, out.err
}

// run makes the request of one or several sends.
func (s *sendBatches) run(ctx context.Context, calls []*waitingSend) ([]sent, error) {
	out := make([]sent, len(calls))
	if len(calls) == 1 {
		out[0].err = s.client.attempt(ctx, methodSend, calls[0].params, decodeSignature)
		return out, nil
	}
	now := s.client.now()
	pause, until := now.Add(batchPause).UnixNano(), s.until.Load()
	if until != 0 && (now.UnixNano() < until || !s.until.CompareAndSwap(until, pause)) { // only one batch tries
		for i := range out {
			out[i].alone = true
		}
		return out, nil
	}
	shared := new(sharedRequest)
	for _, c := range calls {
		c.batch.Store(shared)
	}
	outcomes, whole := s.client.sendBatch(ctx, calls)
	failed := false
	for i, err := range outcomes {
		out[i] = sent{err: err, whole: whole}
		kind := onchain.KindOf(err)
		failed = failed || fromBatch(err) || kind != "" && kind != onchain.KindRateLimited && kind != onchain.KindNodeBehind
	}
	switch {
	case failed:
		s.until.Store(pause)
	case until != 0:
		s.until.CompareAndSwap(pause, 0)
	}
	return out, nil
}

// fromBatch reports whether a batched send has to be repeated alone: its outcome may only show that the endpoint
// takes no batches, or none so long.
func fromBatch(err error) bool {
	var refused *onchain.RPCError
	kind := onchain.KindOf(err)
	return errors.As(err, &refused) || kind == onchain.KindBadResponse || kind == onchain.KindRejected
}

// sendBatch makes the sends by one request, and returns the outcome of each. whole is true if the request
// failed, so that they have the same.
func (c *Client) sendBatch(ctx context.Context, calls []*waitingSend) (outcomes []error, whole bool) {
	requests := make([]request, len(calls))
	for i, call := range calls {
		requests[i] = request{Version: "2.0", ID: i + 1, Method: methodSend, Params: call.params}
	}
	outcomes = make([]error, len(calls))
	err := c.post(ctx, methodSend, requests, func(resp *http.Response, body *boundedBody) error {
		return c.withRetryAfter(c.decodeBatch(resp, body, outcomes), resp)
	})
	if err == nil {
		return outcomes, false
	}
	for i := range outcomes {
		outcomes[i] = err
		if u := (*onchain.Unavailable)(nil); errors.As(err, &u) {
			own := *u // callers add their endpoint's name
			outcomes[i] = &own
		}
	}
	return outcomes, true
}

// decodeBatch stores the outcome of each call, or returns the error that all of them have.
func (c *Client) decodeBatch(resp *http.Response, body *boundedBody, outcomes []error) error {
	if resp.StatusCode != http.StatusOK { // also with a JSON-RPC error, which is not one of a call
		return c.decode(methodSend, resp.StatusCode, &boundedBody{from: http.NoBody}, nil)
	}
	var answer jsontext.Value
	var answers []jsontext.Value
	if json.UnmarshalRead(body, &answer, lenient) != nil || json.Unmarshal(answer, &answers, lenient) != nil {
		return c.notBatch(answer)
	}
	for i := range outcomes {
		outcomes[i] = onchain.Malformed(methodSend, "the answer to a batch of %d has %d, expected one to this call", len(outcomes), len(answers))
	}
	answered := make(map[int]bool, len(outcomes))
	for _, a := range answers {
		var head struct {
			ID int `json:"id"`
		}
		if json.Unmarshal(a, &head, lenient) != nil || head.ID < 1 || head.ID > len(outcomes) {
			continue
		}
		i := head.ID - 1
		if answered[i] {
			outcomes[i] = onchain.Malformed(methodSend, "two answers to one call of a batch")
			continue
		}
		answered[i] = true
		outcomes[i] = c.withRetryAfter(c.decode(methodSend, resp.StatusCode, &boundedBody{from: bytes.NewReader(a)}, decodeSignature), resp)
	}
	if len(answered) == 0 {
		return outcomes[0]
	}
	return nil
}

// notBatch returns the error of a batch whose answer is not an array. An endpoint may say so that it is busy or
// behind.
func (c *Client) notBatch(answer jsontext.Value) error {
	err := c.decode(methodSend, http.StatusOK, &boundedBody{from: bytes.NewReader(answer)}, (*jsontext.Decoder).SkipValue)
	switch onchain.KindOf(err) {
	case onchain.KindRateLimited, onchain.KindNodeBehind:
		return err
	default:
		return onchain.Malformed(methodSend, "the answer to a batch is not an array")
	}
}
