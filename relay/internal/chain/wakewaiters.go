package chain

import (
	"context"
	"sync"
	"time"
)

// signal wakes all waiting goroutines when it is raised.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

func newSignal() signal { return signal{ch: make(chan struct{})} }

func (s *signal) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ch)
	s.ch = make(chan struct{})
}

// next returns a channel that is closed when the signal is next raised.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ch
}

// sleep waits for d; it returns false when the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
