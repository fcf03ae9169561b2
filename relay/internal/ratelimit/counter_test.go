package ratelimit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fleet is a Store in memory.
type fleet struct {
	mu     sync.Mutex
	counts map[time.Time]map[Client]int
	calls  int
	// largest is the most clients of a call.
	largest int
	// fault is the error of each call; afterwards is true if the call counts all the same.
	fault      error
	afterwards bool
}

func (f *fleet) AddRequests(_ context.Context, start time.Time, requests map[Client]int) (map[Client]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.largest = max(f.largest, len(requests))
	if f.fault != nil && !f.afterwards {
		return nil, f.fault
	}
	if f.counts == nil {
		f.counts = map[time.Time]map[Client]int{}
	}
	if f.counts[start] == nil {
		f.counts[start] = map[Client]int{}
	}
	answer := maps.Clone(requests)
	for client, n := range requests {
		f.counts[start][client] += n
		answer[client] = f.counts[start][client]
	}
	return answer, f.fault
}

func newCounter(f *fleet, log *bytes.Buffer) *Counter {
	c := New(Options{Store: f, Secret: []byte("secret"), Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))})
	c.Config(100, time.Minute)
	return c
}

// window is the window of the present.
func present() time.Time { return time.Now().UTC().Truncate(time.Minute) }

func requestsOf(c *Counter, key string) int {
	n, _, _ := c.Get(key, present(), present().Add(-time.Minute))
	return n
}

func TestARequestIsKnownToOtherProcessesSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, log := new(fleet), new(bytes.Buffer)
		a, b := newCounter(f, log), newCounter(f, log)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go a.Run(ctx)
		go b.Run(ctx)
		for range 50 {
			_ = a.Increment("one", present())
		}
		_ = b.Increment("one", present())
		time.Sleep(2 * syncPause)
		synctest.Wait()
		_ = b.Increment("one", present())
		time.Sleep(2 * syncPause)
		synctest.Wait()
		if n := requestsOf(b, "one"); n != 52 {
			t.Errorf("the other process knows %d requests, want 52", n)
		}
		calls := f.calls
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.calls != calls {
			t.Errorf("%d calls of the database without requests, want none", f.calls-calls)
		}
	})
}

func TestOnlyNewRequestsAreSentAndInSmallCalls(t *testing.T) {
	t.Parallel()
	f, log := new(fleet), new(bytes.Buffer)
	c := newCounter(f, log)
	for i := range 2*maxClients + 1 {
		_ = c.Increment(strconv.Itoa(i), present())
	}
	c.Sync(t.Context())
	if f.calls != 3 || f.largest != maxClients {
		t.Errorf("%d calls with at most %d clients, want 3 with at most %d", f.calls, f.largest, maxClients)
	}
	_ = c.Increment("1", present())
	f.calls, f.largest = 0, 0
	c.Sync(t.Context())
	if f.calls != 1 || f.largest != 1 {
		t.Errorf("one new request is sent in %d calls with %d clients, want 1 with 1", f.calls, f.largest)
	}
}

// A long outage must not take the counts of thousands of clients with it, a call each time.
func TestAFailedCallKeepsWhatWasNotSent(t *testing.T) {
	t.Parallel()
	f := &fleet{fault: errors.New("away")}
	c := newCounter(f, new(bytes.Buffer))
	for i := range 2*maxClients + 1 {
		_ = c.Increment(strconv.Itoa(i), present())
	}
	c.Sync(t.Context())
	if f.calls != 1 {
		t.Errorf("%d calls of a database that is away, want 1", f.calls)
	}
	f.fault = nil
	c.Sync(t.Context())
	// The failed call had a full thousand of clients, or the one that was over.
	if n := len(f.counts[present()]); n != maxClients+1 && n != 2*maxClients {
		t.Errorf("%d clients are counted afterwards, want all but those of the failed call", n)
	}
}

// What a failed call sent is counted by this process, and not sent again: it may have been counted.
func TestAFailedCallCountsNothingTwice(t *testing.T) {
	t.Parallel()
	for name, afterwards := range map[string]bool{"the call was not made": false, "the answer was lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, log := &fleet{fault: errors.New("away"), afterwards: afterwards}, new(bytes.Buffer)
			c := newCounter(f, log)
			for range 4 {
				_ = c.IncrementBy("one", present(), 5)
				c.Sync(t.Context())
			}
			if n := requestsOf(c, "one"); n != 20 {
				t.Errorf("the process counts %d requests during the outage, want 20", n)
			}
			f.fault = nil
			_ = c.Increment("one", present())
			c.Sync(t.Context())
			if n := requestsOf(c, "one"); n != 21 {
				t.Errorf("the process counts %d requests afterwards, want 21", n)
			}
			if warns, infos := strings.Count(log.String(), "not shared"), strings.Count(log.String(), "shared again"); warns != 1 || infos != 1 {
				t.Errorf("the outage is logged %d times and its end %d times, want once each:\n%s", warns, infos, log)
			}
		})
	}
}

func TestAStopIsNoFault(t *testing.T) {
	t.Parallel()
	f, log := &fleet{fault: context.Canceled}, new(bytes.Buffer)
	c := newCounter(f, log)
	_ = c.Increment("one", present())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Sync(ctx)
	if log.Len() > 0 {
		t.Errorf("a stop is logged: %s", log)
	}
}

func TestWindowsAreForgottenAndClientsDifferByWindowAndSecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, log := new(fleet), new(bytes.Buffer)
		c := newCounter(f, log)
		first := present()
		_ = c.Increment("one", first)
		c.Sync(t.Context())
		time.Sleep(90 * time.Second)
		_ = c.Increment("one", present())
		c.Sync(t.Context())
		if _, before, _ := c.Get("one", first.Add(time.Minute), first); before != 1 {
			t.Errorf("the window before has %d requests, want 1", before)
		}
		time.Sleep(time.Minute)
		c.Sync(t.Context())
		if len(c.windows) != 1 {
			t.Errorf("%d windows are kept, want 1", len(c.windows))
		}
		other := New(Options{Store: f, Secret: []byte("another"), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if c.clientOf("one", first) == c.clientOf("one", first.Add(time.Minute)) || c.clientOf("one", first) == other.clientOf("one", first) {
			t.Error("a client is the same in two windows, or with two secrets")
		}
	})
}
