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
	// batchPause is how long sends are made alone after a batch failed: the endpoint may take none.
	batchPause = time.Minute
)

// sendBatches makes sends without preflight that are ready at the same moment by one request, a JSON-RPC
// batch. Other calls are not made so: the endpoint may answer a batch's calls one after the other, and sends
// without preflight are quick. They may also be repeated, if the endpoint takes no batches.
type sendBatches struct {
	client *Client
	queue  batch.Queue[[]any, sent]
	// until is when batches may be tried again, in nanoseconds; 0 before any failed.
	until atomic.Int64
}

// sent is the outcome of a send. batched is true if it shared a request.
type sent struct {
	batched bool
	err     error
}

func newSendBatches(c *Client) *sendBatches {
	s := &sendBatches{client: c}
	s.queue = batch.Queue[[]any, sent]{Runners: concurrentBatches, Limit: maxBatch, Stall: maxBatchWait, Run: s.run}
	return s
}

// paused reports whether sends are made alone now.
func (s *sendBatches) paused() bool {
	return s == nil || s.client.now().UnixNano() < s.until.Load()
}

// send makes a send by a request of its own, or with others that are ready.
func (s *sendBatches) send(ctx context.Context, params []any) (batched bool, err error) {
	out, err := s.queue.Do(ctx, params)
	if err != nil || onchain.KindOf(out.err) == onchain.KindCancelled {
		<-ctx.Done() // a batch ends early only when all its callers have left
		return false, Ended(ctx, methodSend)
	}
	return out.batched, out.err
}

func (s *sendBatches) run(ctx context.Context, calls [][]any) ([]sent, error) {
	if len(calls) == 1 {
		return []sent{{err: s.client.attempt(ctx, methodSend, calls[0], decodeSignature)}}, nil
	}
	out := make([]sent, len(calls))
	pause := false
	for i, err := range s.client.sendBatch(ctx, calls) {
		out[i] = sent{batched: true, err: err}
		kind := onchain.KindOf(err)
		pause = pause || fromBatch(err) || kind == onchain.KindServerError || kind == onchain.KindConnection
	}
	if pause {
		s.until.Store(s.client.now().Add(batchPause).UnixNano())
	}
	return out, nil
}

// fromBatch reports whether an outcome may come from the endpoint taking no batches, or none so long, so that
// the send has to be repeated alone.
func fromBatch(err error) bool {
	var refused *onchain.RPCError
	kind := onchain.KindOf(err)
	return errors.As(err, &refused) || kind == onchain.KindBadResponse || kind == onchain.KindRejected
}

// sendBatch makes the sends by one request, and returns the outcome of each.
func (c *Client) sendBatch(ctx context.Context, calls [][]any) []error {
	requests := make([]request, len(calls))
	for i, params := range calls {
		requests[i] = request{Version: "2.0", ID: i + 1, Method: methodSend, Params: params}
	}
	outcomes := make([]error, len(calls))
	err := c.post(ctx, methodSend, requests, func(resp *http.Response, body *boundedBody) error {
		return c.decodeBatch(resp, body, outcomes)
	})
	if err == nil {
		return outcomes
	}
	for i := range outcomes {
		outcomes[i] = err
		if u := (*onchain.Unavailable)(nil); errors.As(err, &u) {
			own := *u // callers add their endpoint's name
			own.Shared = i > 0
			outcomes[i] = &own
		}
	}
	return outcomes
}

// decodeBatch stores the outcome of each call, or returns an error if the answer is not that to a batch.
func (c *Client) decodeBatch(resp *http.Response, body *boundedBody, outcomes []error) error {
	if resp.StatusCode != http.StatusOK { // also with a JSON-RPC error, which is not one of a call
		return c.withRetryAfter(c.decode(methodSend, resp.StatusCode, &boundedBody{from: http.NoBody}, nil), resp)
	}
	var answers []jsontext.Value
	if json.UnmarshalRead(body, &answers, lenient) != nil {
		return onchain.Malformed(methodSend, "the answer to a batch is not an array")
	}
	for i := range outcomes {
		outcomes[i] = onchain.Malformed(methodSend, "the answer to a batch of %d has %d, expected one to this call", len(outcomes), len(answers))
	}
	answered := make([]bool, len(outcomes))
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
	return nil
}
