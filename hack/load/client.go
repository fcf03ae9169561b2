package load

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"github.com/google/uuid"
)

// maxProofs is how often an SDK makes a proof for a new root when the old one was evicted.
const maxProofs = 16

// client drives one spend to its outcome, as an SDK does.
type client struct {
	*Load
	spend  *spend
	record *Record
}

// run returns true when the spend has its outcome, false when the client was stopped before.
func (c *client) run(ctx context.Context) bool {
	if c.spend.swap != nil && !c.price(ctx) {
		return false
	}
	for range maxProofs {
		root, ok := c.freshRoot(ctx)
		if !ok {
			return false
		}
		index, request := c.prove(root)
		code, ok := c.submitAndFollow(ctx, index, request)
		if !ok {
			return false
		}
		if code != "root_not_found" {
			return true
		}
	}
	return true // an SDK gives up after so many proofs
}

// freshRoot asks relays in turn until one answers.
func (c *client) freshRoot(ctx context.Context) (root [32]byte, ok bool) {
	for try := 0; ; try++ {
		if root, err := c.root(ctx, c.anyRelay()); err == nil {
			return root, true
		}
		if !c.pause(ctx, 0, try) {
			return root, false
		}
	}
}

func (c *client) prove(root [32]byte) (index int, q Request) {
	q = c.Options.prove(c.spend, root)
	if c.spend.hasIdempotencyKey {
		q.IdempotencyKey = hex.EncodeToString(bytesOf(c.spend.rand, keyBytes))
	}
	return c.journal.request(c.record, q), q
}

// submitAndFollow submits a request and polls it until its outcome is final. It returns the
// code of a refusal or failure, empty for a success.
func (c *client) submitAndFollow(ctx context.Context, index int, q Request) (code string, ok bool) {
	defer c.sendDirectly(ctx, q)()
	a, ok := c.sendUntilAnswered(ctx, index, &q, 0)
	if !ok {
		return "", false
	}
	if !a.Accepted() {
		return a.Code, true
	}
	if c.spend.repeats {
		if again, ok := c.repeat(ctx, index, &q); ok && again.Accepted() {
			a = again
		}
	}
	return c.awaitOutcome(ctx, index, a.RequestID)
}

// sendDirectly makes the wallet send the request to the chain itself, once, and returns a
// function that waits until the request is sent.
func (c *client) sendDirectly(ctx context.Context, q Request) (wait func()) {
	if !c.spend.sendsDirectly || c.Direct == nil {
		return func() {}
	}
	c.spend.sendsDirectly = false
	var sending sync.WaitGroup
	sending.Go(func() {
		if Sleep(ctx, c.spend.directDelay) {
			c.Direct(ctx, &q)
		}
	})
	return sending.Wait
}

// repeat sends an accepted request again, as after a lost answer.
func (c *client) repeat(ctx context.Context, index int, q *Request) (*Answer, bool) {
	proof := 0
	// An Idempotency-Key identifies one body, so a keyed repeat keeps its proof.
	if c.spend.reproves && q.IdempotencyKey == "" {
		another := c.Simulator.Prove(&q.Inputs, 1)
		q.Proofs = append(q.Proofs, another)
		c.journal.proof(c.record, index, another)
		proof = 1
	}
	return c.sendUntilAnswered(ctx, index, q, proof)
}

// sendUntilAnswered sends a request until a relay accepts or refuses it. A missing answer, a 5xx
// and a 429 do not say whether the request was accepted, so the client sends it again
// to some relay.
func (c *client) sendUntilAnswered(ctx context.Context, index int, q *Request, proof int) (*Answer, bool) {
	for try := 0; ; try++ {
		a := c.submit(ctx, c.spend, q, proof, c.anyRelay())
		c.journal.answer(c.record, index, a)
		if a.Status != 0 && a.Status/100 != 5 && a.Status != 429 {
			return a, true
		}
		if !c.pause(ctx, a.RetryAfter, try) {
			return nil, false
		}
	}
}

// awaitOutcome polls a submission until no fork can undo its outcome.
func (c *client) awaitOutcome(ctx context.Context, index int, id uuid.UUID) (code string, ok bool) {
	for {
		wait := c.PollMin + time.Duration(c.spend.rand.Int64N(int64(c.PollMax-c.PollMin)+1))
		if !Sleep(ctx, wait) {
			return "", false
		}
		a := c.status(ctx, id, c.anyRelay())
		c.journal.answer(c.record, index, a)
		switch {
		case a.State == "completed" && a.Finalized:
			return "", true
		case a.Refunded() && !a.Finalized:
			// A fork may undo the refund, and the swap can still be executed.
		case a.State == "failed":
			return a.Code, true
		case a.Status == 404:
			// The accepted submission is gone; the 404 in the journal is a fault of the relay.
			return a.Code, true
		}
	}
}

func (c *client) anyRelay() int { return c.spend.rand.IntN(len(c.Relays)) }

// pause waits as long as the relay asked, or longer with each try. It varies at random
// so that clients do not retry at the same time.
func (c *client) pause(ctx context.Context, asked time.Duration, try int) bool {
	base := max(asked, c.Backoff<<min(try, 6))
	base = min(base, c.PauseMax)
	return Sleep(ctx, base/2+time.Duration(c.spend.rand.Int64N(int64(base))))
}

// Sleep reports whether the time passed before the end of ctx.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
