// Package ratelimit counts clients' requests over all processes of a fleet, so that a client behind
// five pods has one limit and not five.
package ratelimit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"
)

// Client stands for a client in the database: a hash of its address or its key's name, and of the
// window, so that the database holds no address, and no client can be followed from one window to
// another.
type Client [16]byte

// Store keeps the fleet's counts.
type Store interface {
	// AddRequests adds each client's requests to its count in the window that starts at that time,
	// and returns the counts. It deletes counts of windows that ended long before.
	AddRequests(ctx context.Context, window time.Time, requests map[Client]int) (counts map[Client]int, err error)
}

const (
	// syncInterval is the longest time for which a request is unknown to the other processes.
	syncInterval = time.Second
	// syncShare is the share of a limit that a client may use up in one process before the other
	// processes are told at once.
	syncShare = 20
	// syncTimeout bounds a call to the database.
	syncTimeout = 5 * time.Second
)

// Counter counts requests. It is an httprate.LimitCounter, of one goroutine that counts at a time and
// any that read. Requests are counted in memory, and Run shares the counts. While the database is
// unavailable, each process limits its own clients.
type Counter struct {
	store Store
	now   func() time.Time
	log   *slog.Logger
	// soon wakes Run before its next tick.
	soon chan struct{}

	mu sync.Mutex
	// limit is the largest number of requests in a window, and length the length of a window.
	limit   int
	length  time.Duration
	windows map[time.Time]map[Client]*count
	failing bool
}

// count is the count of a client in a window.
type count struct {
	// shared are the fleet's requests, as of the last sync. own are those of this process since then,
	// and sending are those that a sync under way tells.
	shared, own, sending int
}

// New makes a Counter.
func New(store Store, now func() time.Time, log *slog.Logger) *Counter {
	return &Counter{store: store, now: now, log: log, soon: make(chan struct{}, 1), windows: map[time.Time]map[Client]*count{}}
}

// Config implements httprate.LimitCounter.
func (c *Counter) Config(limit int, length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.length = limit, length
}

// Increment implements httprate.LimitCounter. It never fails.
func (c *Counter) Increment(key string, window time.Time) error {
	return c.IncrementBy(key, window, 1)
}

// IncrementBy implements httprate.LimitCounter. It never fails.
func (c *Counter) IncrementBy(key string, window time.Time, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	clients := c.windows[window]
	if clients == nil {
		clients = map[Client]*count{}
		c.windows[window] = clients
	}
	client := clientOf(key, window)
	if clients[client] == nil {
		clients[client] = new(count)
	}
	clients[client].own += n
	if clients[client].own >= max(1, c.limit/syncShare) {
		select {
		case c.soon <- struct{}{}:
		default:
		}
	}
	return nil
}

// Get implements httprate.LimitCounter. It never fails.
func (c *Counter) Get(key string, current, previous time.Time) (requests, before int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := func(window time.Time) int {
		if n := c.windows[window][clientOf(key, window)]; n != nil {
			return n.shared + n.sending + n.own
		}
		return 0
	}
	return in(current), in(previous), nil
}

func clientOf(key string, window time.Time) (client Client) {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte("relaypool client"), uint64(window.Unix())), key...)) //nolint:gosec // a time after 1970
	copy(client[:], sum[:])
	return client
}
