package ratelimit

import (
	"context"
	"time"
)

const (
	// syncPause is the time from a request until it is shared with other processes, and the least time
	// between two syncs.
	syncPause = 200 * time.Millisecond
	// syncTimeout bounds a call to the database.
	syncTimeout = 5 * time.Second
	// maxClients is the most clients in one call.
	maxClients = 1000
)

// Run shares the counts with the other processes until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.unshared:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(syncPause):
		}
		c.Sync(ctx)
	}
}

// Sync adds what was counted since the last Sync to the database's counts, and learns what other
// processes counted of the same clients. It forgets windows that are over.
func (c *Counter) Sync(ctx context.Context) {
	shares := c.take()
	for i, s := range shares {
		call, cancel := context.WithTimeout(ctx, syncTimeout)
		counts, err := c.o.Store.AddRequests(call, s.start, s.requests)
		cancel()
		if err != nil {
			c.giveBack(shares[i+1:])
			if ctx.Err() == nil {
				c.logChange(ctx, err)
			}
			return
		}
		c.learn(s.start, counts)
	}
	c.logChange(ctx, nil)
}

// share is what one call adds to a window's counts.
type share struct {
	start    time.Time
	requests map[Client]int
}

// take returns what the other processes do not know. Each count is sent once: after a failed call
// nobody knows whether it was added, and adding it twice would refuse honest clients.
func (c *Counter) take() (all []share) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for start, w := range c.windows {
		if c.o.Now().Sub(start) > 2*c.length { // a limit considers the current window and the one before
			delete(c.windows, start)
			continue
		}
		s := share{start, map[Client]int{}}
		for client := range w.unshared {
			if len(s.requests) == maxClients {
				all, s = append(all, s), share{start, map[Client]int{}}
			}
			s.requests[client] = w.counts[client].own
			w.counts[client].own = 0
		}
		clear(w.unshared)
		if len(s.requests) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// giveBack leaves shares that were not sent to the next Sync.
func (c *Counter) giveBack(unsent []share) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range unsent {
		w := c.windows[s.start]
		for client, n := range s.requests {
			w.counts[client].own += n
			w.unshared[client] = struct{}{}
		}
	}
}

// learn takes over the fleet's counts. A count never falls, because what a failed call sent may be
// missing from the fleet's.
func (c *Counter) learn(start time.Time, counts map[Client]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.windows[start]
	if w == nil {
		return
	}
	for client, total := range counts {
		if n := w.counts[client]; n != nil {
			n.known = max(n.known, total+n.own)
		}
	}
}

func (c *Counter) logChange(ctx context.Context, failure error) {
	c.mu.Lock()
	changed := c.failing != (failure != nil)
	c.failing = failure != nil
	c.mu.Unlock()
	switch {
	case changed && failure != nil:
		c.o.Log.WarnContext(ctx, "counts of clients' requests are not shared with other processes, which limit on their own", "error", failure)
	case changed:
		c.o.Log.InfoContext(ctx, "counts of clients' requests are shared again")
	}
}
