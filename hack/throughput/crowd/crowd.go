// Package crowd sends load to relays, at full speed or at a steady rate. Requests are
// proven in advance against one root, or during the run against the newest root.
package crowd

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/errgroup"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// clientTimeout is longer than a relay's longest wait.
	clientTimeout = 90 * time.Second
	// withdrawals is the share of withdrawals, as in hack/drill.
	withdrawals = 0.6
	// rootAge is the maximum age of a root that Stream proves against. streamAhead is how
	// many requests Stream proves ahead.
	rootAge     = 250 * time.Millisecond
	streamAhead = 64
	maxIdle     = 8192
)

// Crowd is many clients. Only one of its floods may run at a time.
type Crowd struct {
	*load.Load
	path   string
	number atomic.Int64

	mu    sync.Mutex
	calls []load.Answer
}

// New makes a crowd of the clients that the options describe. With a Market every request is a
// swap, which its client polls every PollMin until the swap is executed or refunded.
func New(o load.Options) (*Crowd, error) {
	c := &Crowd{path: contract.TransactPath}
	if o.Market != nil {
		c.path = contract.TransactSwapPath
	}
	o.Withdrawals, o.Timeout, o.InFlight = withdrawals, clientTimeout, 1
	o.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, DisableCompression: true}}
	var err error
	c.Load, err = load.New(o)
	return c, err
}

// Close ends idle connections.
func (c *Crowd) Close() { c.HTTP.CloseIdleConnections() }

// Calls returns the answers since the last call, and clears them.
func (c *Crowd) Calls() []load.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

// Answered returns how many answers Calls would return.
func (c *Crowd) Answered() int { return c.AnsweredSince(time.Time{}) }

// AnsweredSince returns how many of those came at that time or later.
func (c *Crowd) AnsweredSince(since time.Time) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.calls {
		if !c.calls[i].At.Before(since) {
			n++
		}
	}
	return n
}

// HasSuccessSince reports whether an answer since that time had a status 2xx.
func (c *Crowd) HasSuccessSince(since time.Time) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.calls, func(a load.Answer) bool { return a.Status/100 == 2 && !a.At.Before(since) }), nil
}

// Prepare proves requests against the newest root, on every core.
func (c *Crowd) Prepare(ctx context.Context, n int) ([][]byte, error) {
	root, err := c.Root(ctx)
	if err != nil {
		return nil, err
	}
	bodies := make([][]byte, n)
	provers, ctx := errgroup.WithContext(ctx)
	provers.SetLimit(runtime.NumCPU())
	for i := range bodies {
		provers.Go(func() (err error) {
			bodies[i], err = c.prove(ctx, root)
			return errors.Join(err, ctx.Err())
		})
	}
	return bodies, provers.Wait()
}

func (c *Crowd) prove(ctx context.Context, root [32]byte) ([]byte, error) {
	number := int(c.number.Add(1))
	if c.Market == nil {
		q := c.NewRequest(number, root)
		return q.Body(0)
	}
	q, err := c.NewSwapRequest(ctx, number, root, solana.PublicKey{})
	if err != nil {
		return nil, err
	}
	return q.Body(0)
}

// Steady sends bodies at a rate, in bursts and gaps like independent clients, and
// returns when all have been answered.
func (c *Crowd) Steady(ctx context.Context, rate float64, bodies [][]byte) {
	r := rand.New(rand.NewPCG(c.Seed, uint64(len(bodies)))) //nolint:gosec // a schedule that repeats needs no secure randomness
	var clients sync.WaitGroup
	due := c.Now()
	for _, body := range bodies {
		due = due.Add(time.Duration(r.ExpFloat64() / rate * float64(time.Second)))
		if !load.Sleep(ctx, due.Sub(c.Now())) {
			break
		}
		clients.Go(func() { c.submit(ctx, body, "") })
	}
	clients.Wait()
}

// Source returns requests one by one; false when there are no more.
type Source func() (body []byte, ok bool)

// SourceOf returns a source of prepared bodies.
func SourceOf(bodies [][]byte) Source {
	var next atomic.Int64
	return func() ([]byte, bool) {
		i := int(next.Add(1)) - 1
		if i >= len(bodies) {
			return nil, false
		}
		return bodies[i], true
	}
}

// Stream proves requests while they are sent, against recent roots, until ctx ends. Use it
// when the root history is too short for one root per measurement.
func (c *Crowd) Stream(ctx context.Context) Source {
	bodies := make(chan []byte, streamAhead)
	go func() {
		defer close(bodies)
		var root [32]byte
		var at time.Time
		for ctx.Err() == nil {
			if now := c.Now(); now.Sub(at) > rootAge {
				newest, err := c.Root(ctx)
				if err != nil {
					load.Sleep(ctx, rootAge)
					continue
				}
				root, at = newest, now
			}
			body, err := c.prove(ctx, root)
			if err != nil {
				return // every other request would fail the same way
			}
			select {
			case bodies <- body:
			case <-ctx.Done():
			}
		}
	}()
	return func() ([]byte, bool) {
		body, ok := <-bodies
		return body, ok
	}
}

// Flood runs clients that send requests until ctx ends or no request is left. Each sends
// its next request when it has the answer to the previous one. The clients start one by one
// within ramp, because real clients do not all start at once.
func (c *Crowd) Flood(ctx context.Context, clients int, ramp time.Duration, prefer string, next Source) {
	c.each(ctx, clients, ramp, func(int) {
		for ctx.Err() == nil {
			body, ok := next()
			if !ok {
				return
			}
			c.submit(ctx, body, prefer)
		}
	})
}

// ProveAnew runs clients that repeatedly read the newest root, prove and submit, until ctx
// ends. After a refusal they pause first. They start one by one within ramp.
func (c *Crowd) ProveAnew(ctx context.Context, clients int, ramp time.Duration) {
	c.each(ctx, clients, ramp, func(n int) {
		r := rand.New(rand.NewPCG(c.Seed, uint64(n))) //nolint:gosec // see Steady
		for ctx.Err() == nil {
			if root, err := c.Root(ctx); err == nil {
				if body, err := c.prove(ctx, root); err == nil && !refusedForNow(c.submit(ctx, body, "")) {
					continue
				}
			}
			// A busy relay asks for a pause of a second. If all clients retried at the same
			// time, the relay would be busy again.
			load.Sleep(ctx, time.Duration(r.Int64N(int64(time.Second))))
		}
	})
}

// each runs clients, which start one by one within ramp.
func (c *Crowd) each(ctx context.Context, clients int, ramp time.Duration, client func(number int)) {
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			load.Sleep(ctx, ramp*time.Duration(n)/time.Duration(clients))
			client(n)
		})
	}
	all.Wait()
}

// refusedForNow reports whether the same request may be accepted later.
func refusedForNow(a *load.Answer) bool {
	return a.Status == 0 || a.Status == http.StatusServiceUnavailable || a.Status == http.StatusTooManyRequests
}

// submit sends a body once, and records and returns the answer. A swap is polled until it ends. A swap
// that was not executed is recorded with its code, and one that has not ended when ctx ends
// counts as unanswered.
func (c *Crowd) submit(ctx context.Context, body []byte, prefer string) *load.Answer {
	a := c.Post(ctx, c.path, prefer, body)
	if a.Status == http.StatusAccepted && prefer == "" && c.Market == nil {
		a.Status = 0 // the relay stopped waiting: this is no outcome
	}
	for ended := c.Market == nil || a.Status/100 != 2; !ended; {
		if !load.Sleep(ctx, c.PollMin) {
			a.Status = 0
			break
		}
		status := c.Status(ctx, a.RequestID)
		if ended = status.State == "completed" || status.State == "failed"; ended {
			a.At = status.At
		}
		if status.State == "failed" {
			a.Status, a.Code = http.StatusConflict, status.Code
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, *a)
	return a
}
