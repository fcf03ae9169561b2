// Package crowd drives relays as fast, or as evenly, as a measurement asks: with
// requests that are proven before the clock runs, where one root serves them
// all, or against the newest root, where it does not.
package crowd

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// patience is above the longest time that a relay makes a client wait.
	patience = 90 * time.Second
	// maxAnswer bounds an answer's body.
	maxAnswer = 1 << 20
	// withdrawals is their share, as in hack/drill.
	withdrawals = 0.6
	// rootAge is how old a root may be that Stream proves against, streamAhead how
	// many requests it has in hand.
	rootAge     = 250 * time.Millisecond
	streamAhead = 64
)

// Options configure a Crowd. All but Market and Look are required.
type Options struct {
	// Relays are base URLs; requests go to them in turn.
	Relays    []string
	Simulator *simulator.Simulator
	Mint      shieldpool.Mint
	// Market has every request be a swap there, which its client follows until it
	// is executed or refunded; nil for none.
	Market *load.Market
	// Look is the pause between two looks at a swap's status; 0 is 2 s.
	Look time.Duration
	// Seed decides notes and pauses.
	Seed uint64
	Now  func() time.Time
}

// Crowd is many clients. Its methods must not be called concurrently.
type Crowd struct {
	o      Options
	draw   load.Options
	http   *http.Client
	number atomic.Int64
	turn   atomic.Int64
	price  price

	mu    sync.Mutex
	calls []Call
}

// Call is one request and how it was answered.
type Call struct {
	Sent, Answered time.Time
	// Status is the HTTP status; 0 when no answer came.
	Status int
	// Code is of a refusal.
	Code string
}

// New checks the options.
func New(o Options) (*Crowd, error) {
	if len(o.Relays) == 0 || o.Simulator == nil || o.Now == nil || o.Mint.Address.IsZero() {
		return nil, errors.New("the crowd needs Relays, Simulator, Mint and Now")
	}
	if o.Look == 0 {
		o.Look = defaultLook
	}
	const conns = 4096
	return &Crowd{
		o: o, draw: load.Options{Simulator: o.Simulator, Mint: o.Mint, Seed: o.Seed, Withdrawals: withdrawals, Patience: patience, Market: o.Market},
		http: &http.Client{Transport: &http.Transport{MaxIdleConns: conns, MaxIdleConnsPerHost: conns, DisableCompression: true}, Timeout: patience},
	}, nil
}

// Close ends idle connections.
func (c *Crowd) Close() { c.http.CloseIdleConnections() }

// Calls gives what was answered since the last time, and forgets it.
func (c *Crowd) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

// Answered counts what Calls would give.
func (c *Crowd) Answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// Passed tells whether one of what Calls would give passed since then.
func (c *Crowd) Passed(since time.Time) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if call.Status/100 == 2 && !call.Answered.Before(since) {
			return true, nil
		}
	}
	return false, nil
}

// Prepare proves requests against the newest root, on every core.
func (c *Crowd) Prepare(ctx context.Context, n int) ([][]byte, error) {
	root, err := c.root(ctx)
	if err != nil {
		return nil, err
	}
	bodies, faults := make([][]byte, n), make([]error, runtime.NumCPU())
	var next atomic.Int64
	var provers sync.WaitGroup
	for p := range faults {
		provers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && faults[p] == nil && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				bodies[i], faults[p] = c.prove(root)
			}
		})
	}
	provers.Wait()
	return bodies, errors.Join(append(faults, ctx.Err())...)
}

func (c *Crowd) prove(root [32]byte) ([]byte, error) {
	if c.o.Market != nil {
		return c.proveSwap(root)
	}
	q := c.draw.Draw(int(c.number.Add(1)), root)
	return q.Body(0)
}

// Steady sends bodies at a rate, as strangers do, in bursts and gaps, and
// returns when all have been answered.
func (c *Crowd) Steady(ctx context.Context, rate float64, bodies [][]byte) {
	r := rand.New(rand.NewPCG(c.o.Seed, uint64(len(bodies)))) //nolint:gosec // a schedule that repeats needs no secure randomness
	var clients sync.WaitGroup
	due := c.o.Now()
	for _, body := range bodies {
		due = due.Add(time.Duration(r.ExpFloat64() / rate * float64(time.Second)))
		if !sleep(ctx, due.Sub(c.o.Now())) {
			break
		}
		clients.Go(func() { c.submit(ctx, body, "") })
	}
	clients.Wait()
}

// Source gives requests one by one; false when there are no more.
type Source func() (body []byte, ok bool)

// Of gives prepared bodies.
func Of(bodies [][]byte) Source {
	var next atomic.Int64
	return func() ([]byte, bool) {
		i := int(next.Add(1)) - 1
		if i >= len(bodies) {
			return nil, false
		}
		return bodies[i], true
	}
}

// Stream proves requests while they are sent, against roots that are not old,
// until ctx ends: for a ring that is too short for one root to serve a whole
// measurement.
func (c *Crowd) Stream(ctx context.Context) Source {
	bodies := make(chan []byte, streamAhead)
	go func() {
		defer close(bodies)
		var root [32]byte
		var at time.Time
		for ctx.Err() == nil {
			if now := c.o.Now(); now.Sub(at) > rootAge {
				newest, err := c.root(ctx)
				if err != nil {
					sleep(ctx, rootAge)
					continue
				}
				root, at = newest, now
			}
			body, err := c.prove(root)
			if err != nil {
				return // it is the same for every request
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

// Flood has clients send one request after another until ctx ends or there is
// none left; a client sends the next when it has its answer. They come one by
// one within ramp, as no crowd comes at one moment. It reports whether the
// requests lasted.
func (c *Crowd) Flood(ctx context.Context, clients int, ramp time.Duration, prefer string, next Source) (lasted bool) {
	var short atomic.Bool
	var flood sync.WaitGroup
	for n := range clients {
		flood.Go(func() {
			sleep(ctx, ramp*time.Duration(n)/time.Duration(clients))
			for ctx.Err() == nil {
				body, ok := next()
				if !ok {
					short.Store(ctx.Err() == nil)
					return
				}
				c.submit(ctx, body, prefer)
			}
		})
	}
	flood.Wait()
	return !short.Load()
}

// Chase has clients that read the newest root, prove and submit, and do it
// again when it was too late or the pool was busy, until ctx ends. They come
// within ramp.
func (c *Crowd) Chase(ctx context.Context, clients int, ramp time.Duration) {
	var chase sync.WaitGroup
	for i := range clients {
		chase.Go(func() {
			r := rand.New(rand.NewPCG(c.o.Seed, uint64(i))) //nolint:gosec // see Steady
			sleep(ctx, ramp*time.Duration(i)/time.Duration(clients))
			for ctx.Err() == nil {
				if root, err := c.root(ctx); err == nil {
					if body, err := c.prove(root); err == nil && c.submit(ctx, body, "") {
						continue
					}
				}
				// A busy relay asks for a second; clients that come back together
				// would find it busy together.
				sleep(ctx, time.Duration(r.Int64N(int64(time.Second))))
			}
		})
	}
	chase.Wait()
}

// submit sends a body once and notes the answer; false when it asks to wait.
func (c *Crowd) submit(ctx context.Context, body []byte, prefer string) (ok bool) {
	call := Call{Sent: c.o.Now()}
	defer func() {
		c.mu.Lock()
		c.calls = append(c.calls, call)
		c.mu.Unlock()
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.relay()+c.path(), bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	if prefer != "" {
		request.Header.Set("Prefer", prefer)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }() // read to its end
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	call.Answered = c.o.Now()
	if err != nil {
		return false
	}
	call.Status = answer.StatusCode
	var told struct {
		Code      string `json:"code"`
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(content, &told) // an answer without a code counts by its status
	if call.Status/100 != 2 {
		call.Code = told.Code
	} else if c.o.Market != nil {
		c.follow(ctx, told.RequestID, &call)
	}
	return call.Status != http.StatusServiceUnavailable
}

func (c *Crowd) relay() string {
	return c.o.Relays[int(c.turn.Add(1))%len(c.o.Relays)]
}

// root reads the tree's newest root.
func (c *Crowd) root(ctx context.Context) (root [32]byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.relay()+contract.MerkleRootPath, http.NoBody)
	if err != nil {
		return root, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return root, err
	}
	defer func() { _ = answer.Body.Close() }() // read to its end
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return root, err
	}
	var told openapi.MerkleRoot
	if answer.StatusCode != http.StatusOK {
		return root, errors.New("the relay told no root: it answered " + strconv.Itoa(answer.StatusCode))
	}
	if err := json.Unmarshal(content, &told); err != nil {
		return root, fmt.Errorf("decode the root: %w", err)
	}
	if n, err := hex.Decode(root[:], []byte(told.Root)); err != nil || n != len(root) {
		return root, fmt.Errorf("the relay told a root of %d characters, expected %d", len(told.Root), 2*len(root))
	}
	return root, nil
}

// sleep reports whether the time passed before the end of ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
