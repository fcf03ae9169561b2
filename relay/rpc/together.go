package rpc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relaypool/relaypool/relay/batch"
	"github.com/relaypool/relaypool/relay/onchain"
)

const (
	// maxBatch keeps a batch of transactions of 4096 bytes below Agave's limit on a request, 50 KiB.
	maxBatch = 8
	// concurrentBatches bounds the requests under way. It is high, so that no send waits for the answer
	// to another: those that are ready at the same moment share a request.
	concurrentBatches = 256
	// batchPause is how long each call has a request of its own after a batch failed: the endpoint may
	// take no batches.
	batchPause = time.Minute
)

// together makes calls of one method that are ready at the same moment by one request, a JSON-RPC
// batch. It is for calls that are answered quickly, since an endpoint may answer them one after
// the other, and that may be repeated.
type together struct {
	*batch.Queue[[]any, error]
	// alone is when batches may be tried again, in nanoseconds; 0 before any failed.
	alone atomic.Int64
}

func newTogether(c *Client, method string, decode decoder) *together {
	t := &together{}
	t.Queue = &batch.Queue[[]any, error]{Runners: concurrentBatches, Limit: maxBatch, Run: func(ctx context.Context, calls [][]any) ([]error, error) {
		outcomes := make([]error, len(calls))
		if len(calls) > 1 && c.now().UnixNano() >= t.alone.Load() {
			err := c.attemptBatch(ctx, method, calls, decode, outcomes)
			if err == nil {
				return outcomes, nil
			}
			t.alone.Store(c.now().Add(batchPause).UnixNano())
			if isSlowOrBusy(err) {
				for i := range outcomes {
					outcomes[i] = copied(err)
				}
				return outcomes, nil
			}
		}
		var each sync.WaitGroup
		for i, params := range calls {
			each.Go(func() { outcomes[i] = c.attempt(ctx, method, params, decode) })
		}
		each.Wait()
		return outcomes, nil
	}}
	return t
}

// isSlowOrBusy reports whether to repeat the calls would be in vain. After any other failure of a batch
// each has an outcome of its own, so that one broken connection is not counted as many failures.
func isSlowOrBusy(err error) bool {
	kind := onchain.KindOf(err)
	return kind == onchain.KindRateLimited || kind == onchain.KindTimeout || kind == onchain.KindCancelled
}

// copied returns an error that its caller may change: callers add their endpoint's name.
func copied(err error) error {
	if u := (*onchain.Unavailable)(nil); errors.As(err, &u) {
		own := *u
		return &own
	}
	return err
}

// errNotBatch means that the endpoint answered no call of a batch. It may take none.
var errNotBatch = errors.New("the answer to a batch has none to any call")

// attemptBatch makes the calls by one request and stores the outcome of each. It returns an error when
// no call has an outcome of its own.
func (c *Client) attemptBatch(ctx context.Context, method string, calls [][]any, decode decoder, outcomes []error) error {
	requests := make([]request, len(calls))
	for i, params := range calls {
		requests[i] = request{Version: "2.0", ID: i + 1, Method: method, Params: params}
		outcomes[i] = &onchain.Unavailable{Method: method, Kind: onchain.KindBadResponse, Detail: "the answer to a batch has none to this call"}
	}
	return c.post(ctx, method, requests, func(status int, body *boundedBody) error {
		switch {
		case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
			return c.decode(method, status, body, decode)
		case status != http.StatusOK:
			return errNotBatch
		}
		d := newDecoder(body)
		defer body.release(d)
		if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
			return errNotBatch
		}
		result := errNotBatch
		for d.StackDepth() == 1 && d.PeekKind() == '{' {
			a, err := readAnswer(d, decode)
			if err != nil {
				break // what was read before counts
			}
			if id, err := strconv.Atoi(a.id); err == nil && id > 0 && id <= len(outcomes) {
				outcomes[id-1], result = c.outcome(method, status, a, nil, body), nil
			}
		}
		return result
	})
}
