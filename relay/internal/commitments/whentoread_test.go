package commitments_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/commitments"
)

// turnStore decides whose turn it is.
type turnStore struct {
	commitments.Store
	mine, fails atomic.Bool
	asked       atomic.Int64
	every       atomic.Int64
}

func (s *turnStore) TakeTurn(_ context.Context, every time.Duration) (bool, error) {
	s.asked.Add(1)
	s.every.Store(int64(every))
	if s.fails.Load() {
		return false, errors.New("the database is gone")
	}
	return s.mine.Load(), nil
}

// askTwenty waits until the follower has asked twenty times more, and returns the tree's reads meanwhile.
func (s *turnStore) askTwenty(t *testing.T, h *history) (reads int) {
	t.Helper()
	count := func() (n int) { h.set(func() { n = h.treeReads }); return n }
	asked, before := s.asked.Load(), count()
	eventually(t, "the follower asks whose turn it is", func() bool { return s.asked.Load() >= asked+20 })
	return count() - before
}

func TestProcessesTakeTurnsInReadingTheChain(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s := &turnStore{Store: newStore(t, h)}
	var notified atomic.Bool
	const interval = 4 * time.Millisecond
	f, err := commitments.New(commitments.Options{
		Store: s, Chain: h, Tree: h, Pool: h.pool, Log: discard(), Now: h.now, Interval: interval,
		Finalized: h.finalizedSlot, Notified: notified.Load,
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	published := func(what string, leaves uint64) {
		t.Helper()
		eventually(t, what, func() bool { return f.Status().Published == leaves })
	}

	h.block(1, h.transact())
	s.mine.Store(true)
	published("its turn", 2)
	s.mine.Store(false)
	s.askTwenty(t, h) // a pass may be under way
	h.block(2, h.transact())
	if reads := s.askTwenty(t, h); reads != 0 {
		t.Errorf("the tree was read %d times while it was another process's turn, want never", reads)
	}
	if diff := cmp.Diff(interval-interval/4, time.Duration(s.every.Load())); diff != "" {
		t.Errorf("turn without notifications (-want +got):\n%s", diff)
	}
	f.Notice()
	published("a notification", 4)

	notified.Store(true)
	s.askTwenty(t, h)
	if diff := cmp.Diff(4*interval-interval/4, time.Duration(s.every.Load())); diff != "" {
		t.Errorf("turn with notifications (-want +got):\n%s", diff)
	}
	h.block(3, h.transact())
	h.advance(30 * time.Second)
	published("thirty seconds without a pass of its own", 6)

	s.askTwenty(t, h)
	h.block(4, h.transact())
	s.fails.Store(true)
	published("a turn that the database does not tell", 8)
	s.fails.Store(false)

	// The endpoint does not list a block of the tree yet, and nobody else's turn ends the wait.
	s.askTwenty(t, h)
	h.set(func() { h.unlisted[5] = true })
	h.block(5, h.transact())
	f.Notice()
	eventually(t, "the missing block is noticed", func() bool { return f.Status().Lag() == 2 })
	h.set(func() { delete(h.unlisted, 5) })
	published("an index that is not up to date", 10)
}
