// Package ratelimit counts clients' requests over all processes of a fleet, so that a client behind
// five pods has one limit and not five.
package ratelimit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"
)

// Client stands for a client in the database: a keyed hash of its address or its key's name, and of
// the window. Without the secret nobody learns an address from it, nor follows a client from one
// window to the next.
type Client [16]byte

// Store keeps the fleet's counts.
type Store interface {
	// AddRequests adds each client's requests to its count in the window that starts at that time,
	// and returns the counts.
	AddRequests(ctx context.Context, window time.Time, requests map[Client]int) (counts map[Client]int, err error)
}

// Options configure a Counter. All fields are required.
type Options struct {
	Store Store
	// Secret is the same in all processes that share counts, and is not in the database. Whoever can
	// guess it and has the database can find the addresses of the last minutes.
	Secret []byte
	Now    func() time.Time
	Log    *slog.Logger
}

// Counter counts requests. It is an httprate.LimitCounter, and safe for concurrent use. Requests are
// counted in memory, and Run shares the counts. While the database is unavailable, each process limits
// its own clients.
type Counter struct {
	o Options
	// unshared wakes Run when there is something to share.
	unshared chan struct{}

	mu      sync.Mutex
	length  time.Duration // of a window
	windows map[time.Time]*window
	failing bool // the last sync failed
}

// window has the counts of a window.
type window struct {
	counts map[Client]*count
	// unshared are the clients whose own is above 0.
	unshared map[Client]struct{}
}

// count is the count of a client in a window.
type count struct {
	// known are the fleet's requests, as far as this process knows. own are those among them that the
	// other processes do not know yet.
	known, own int
}

// New makes a Counter.
func New(o Options) *Counter {
	return &Counter{o: o, unshared: make(chan struct{}, 1), length: time.Minute, windows: map[time.Time]*window{}}
}

// Config implements httprate.LimitCounter. Counts do not depend on the limit.
func (c *Counter) Config(_ int, length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.length = length
}

// Increment implements httprate.LimitCounter. It never fails.
func (c *Counter) Increment(key string, start time.Time) error { return c.IncrementBy(key, start, 1) }

// IncrementBy implements httprate.LimitCounter. It never fails.
func (c *Counter) IncrementBy(key string, start time.Time, n int) error {
	client := c.clientOf(key, start)
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.windows[start]
	if w == nil {
		w = &window{map[Client]*count{}, map[Client]struct{}{}}
		c.windows[start] = w
	}
	if w.counts[client] == nil {
		w.counts[client] = new(count)
	}
	w.counts[client].known += n
	w.counts[client].own += n
	w.unshared[client] = struct{}{}
	select {
	case c.unshared <- struct{}{}:
	default:
	}
	return nil
}

// Get implements httprate.LimitCounter. It never fails.
func (c *Counter) Get(key string, current, previous time.Time) (requests, before int, err error) {
	now, then := c.clientOf(key, current), c.clientOf(key, previous)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.windows[current].known(now), c.windows[previous].known(then), nil
}

func (w *window) known(client Client) int {
	if w == nil || w.counts[client] == nil {
		return 0
	}
	return w.counts[client].known
}

func (c *Counter) clientOf(key string, start time.Time) (client Client) {
	mac := hmac.New(sha256.New, c.o.Secret)
	mac.Write(append(binary.BigEndian.AppendUint64(nil, uint64(start.Unix())), key...)) //nolint:gosec // a time after 1970
	copy(client[:], mac.Sum(nil))
	return client
}
