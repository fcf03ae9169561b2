package ratelimit

import (
	"context"
	"time"
)

// Run shares the counts with the other processes until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.soon:
		}
		c.Sync(ctx)
	}
}

// Sync tells the database what was counted, and learns what other processes counted. It forgets
// windows that are over.
func (c *Counter) Sync(ctx context.Context) {
	for window, requests := range c.begin(c.now()) {
		call, cancel := context.WithTimeout(ctx, syncTimeout)
		counts, err := c.store.AddRequests(call, window, requests)
		cancel()
		c.end(ctx, window, counts, err)
	}
}

// begin returns what is to be told of each window that still counts.
func (c *Counter) begin(now time.Time) map[time.Time]map[Client]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[time.Time]map[Client]int{}
	for window, clients := range c.windows {
		if now.Sub(window) > 2*c.length { // a limit looks at the current window and the one before
			delete(c.windows, window)
			continue
		}
		if now.Sub(window) > c.length+2*syncInterval { // no process counts in it any more
			continue
		}
		requests := make(map[Client]int, len(clients))
		for client, n := range clients {
			n.sending, n.own = n.sending+n.own, 0
			requests[client] = n.sending
		}
		all[window] = requests
	}
	return all
}

// end takes over the counts. After an error the requests are told again, which may count some of
// them twice: a stricter limit for a minute is the lesser evil.
func (c *Counter) end(ctx context.Context, window time.Time, counts map[Client]int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if failing := err != nil; failing != c.failing {
		c.failing = failing
		if failing {
			c.log.WarnContext(ctx, "counts of clients' requests are not shared with other processes, which limit on their own", "error", err)
		} else {
			c.log.InfoContext(ctx, "counts of clients' requests are shared again")
		}
	}
	if err != nil {
		return
	}
	for client, n := range c.windows[window] {
		if total, ok := counts[client]; ok {
			n.shared, n.sending = total, 0
		}
	}
}
