package app

import (
	"context"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// summaryMaxAge is how long /health and the gauges reuse one count of the backlog, or one
// summary of the swaps.
const summaryMaxAge = 2 * time.Second

// backlogCache caches one count of the backlog for all gauges of a scrape, for scrapes
// that follow each other closely, and for /health.
type backlogCache struct {
	reader *submission.Reader
	mu     sync.Mutex
	last   submission.Backlog
	ok     bool
	at     time.Time
}

func newBacklogCache(reader *submission.Reader) *backlogCache { return &backlogCache{reader: reader} }

func (c *backlogCache) get() (submission.Backlog, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > summaryMaxAge {
		ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
		defer cancel()
		b, err := c.reader.Backlog(ctx)
		c.last, c.ok, c.at = b, err == nil, time.Now()
	}
	return c.last, c.ok
}
