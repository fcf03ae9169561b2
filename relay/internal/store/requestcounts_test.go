package store

import (
	"log/slog"
	"sync"
	"testing"
	"time"

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
		c := ratelimit.New(ratelimit.Options{Store: openOn(t, url), Secret: []byte("secret"), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
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
		ok(t, c.Increment("address 203.0.113.7", window))
		c.Sync(t.Context())
		if n, _, _ := c.Get("address 203.0.113.7", window, window.Add(-time.Minute)); n != 61+i {
			t.Errorf("process %d counts %d requests of the client, want %d", i, n, 61+i)
		}
		if _, n, _ := c.Get("address 203.0.113.7", window.Add(time.Minute), window); n != 61+i {
			t.Errorf("a minute later process %d counts %d requests in the window before, want %d", i, n, 61+i)
		}
	}
}

func TestOldRequestCountsAreDeleted(t *testing.T) {
	t.Parallel()
	s := openOn(t, pgtest.URL(t))
	now := time.Now().UTC().Truncate(time.Minute)
	for _, age := range []time.Duration{time.Hour, 6 * time.Minute, time.Minute, 0} {
		_, err := s.AddRequests(t.Context(), now.Add(-age), map[ratelimit.Client]int{{1}: 1})
		ok(t, err)
	}
	if n, err := s.DeleteRequestCountsBefore(t.Context(), now.Add(-5*time.Minute)); err != nil || n != 2 {
		t.Errorf("%d counts deleted, error %v; want 2", n, err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM request_counts`); n != 2 {
		t.Errorf("%d counts are left, want the 2 that a limit may need", n)
	}
}
