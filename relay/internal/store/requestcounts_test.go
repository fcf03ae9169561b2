package store

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/httprate"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/ratelimit"
)

// A client whose requests reach several processes has one limit.
func TestRequestsAreCountedOverAllProcesses(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	window := time.Now().UTC().Truncate(time.Minute)
	var counters []*ratelimit.Counter
	for range 5 {
		c := ratelimit.New(openOn(t, url), time.Now, slog.New(slog.DiscardHandler))
		c.Config(100, time.Minute)
		counters = append(counters, c)
	}
	for range 3 {
		var all sync.WaitGroup
		for _, c := range counters {
			all.Go(func() {
				for range 4 {
					ok(t, c.Increment("address 203.0.113.7", window))
				}
				ok(t, c.Increment("address of another", window))
				c.Sync(t.Context())
			})
		}
		all.Wait()
	}
	for i, c := range counters {
		c.Sync(t.Context())
		if n, _, _ := c.Get("address 203.0.113.7", window, window.Add(-time.Minute)); n != 60 {
			t.Errorf("process %d counts %d requests of the client, want 60", i, n)
		}
		if n, _, _ := c.Get("address of another", window, window.Add(-time.Minute)); n != 15 {
			t.Errorf("process %d counts %d requests of the other client, want 15", i, n)
		}
		if _, n, _ := c.Get("address 203.0.113.7", window.Add(time.Minute), window); n != 60 {
			t.Errorf("a minute later process %d counts %d requests in the window before, want 60", i, n)
		}
	}
}

func TestOldRequestCountsAreDeleted(t *testing.T) {
	t.Parallel()
	s := openOn(t, pgtest.URL(t))
	now := time.Now().UTC().Truncate(time.Minute)
	for _, age := range []time.Duration{time.Hour, requestCountsKept + time.Minute, time.Minute, 0} {
		_, err := s.AddRequests(t.Context(), now.Add(-age), map[ratelimit.Client]int{{1}: 1})
		ok(t, err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM request_counts`); n != 2 {
		t.Errorf("%d counts are left, want the 2 that a limit may need", n)
	}
}

// While the database is away, a process limits on its own and tells what it counted afterwards.
func TestALimitHoldsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	s := openOn(t, pgtest.URL(t))
	c := ratelimit.New(s, time.Now, slog.New(slog.DiscardHandler))
	var _ httprate.LimitCounter = c
	c.Config(100, time.Minute)
	window := time.Now().UTC().Truncate(time.Minute)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		ok(t, c.IncrementBy("address", window, 2))
		c.Sync(gone)
	}
	if n, _, _ := c.Get("address", window, window.Add(-time.Minute)); n != 6 {
		t.Errorf("the process counts %d requests while the database is away, want 6", n)
	}
	c.Sync(t.Context())
	other := ratelimit.New(s, time.Now, slog.New(slog.DiscardHandler))
	other.Config(100, time.Minute)
	ok(t, other.Increment("address", window))
	other.Sync(t.Context())
	if n, _, _ := other.Get("address", window, window.Add(-time.Minute)); n != 7 {
		t.Errorf("another process counts %d requests afterwards, want 7", n)
	}
}
