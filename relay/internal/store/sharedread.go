package store

import (
	"context"
	"sync"
)

// sharedRead lets callers that wait share a read. Only one runs at a time. A caller gets the result
// of a read that started after its call, and so sees whatever was committed before it.
type sharedRead[T any] struct {
	mu      sync.Mutex
	running bool
	next    *pendingRead[T]
}

// pendingRead has its result once done is closed. It runs with the values of its first caller's
// context, and ends when no caller waits for it any more.
type pendingRead[T any] struct {
	ctx     context.Context
	cancel  context.CancelFunc
	callers int
	done    chan struct{}
	result  T
	err     error
}

func (s *sharedRead[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	p := s.next
	if p == nil {
		p = &pendingRead[T]{done: make(chan struct{})}
		p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // leave calls it
		s.next = p
	}
	p.callers++
	if !s.running {
		s.running = true
		go s.run(read)
	}
	s.mu.Unlock()
	defer s.leave(p)
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (s *sharedRead[T]) leave(p *pendingRead[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.callers--; p.callers == 0 {
		p.cancel()
		if s.next == p { // it has not started, and must not be joined any more
			s.next = nil
		}
	}
}

// run reads until nobody waits.
func (s *sharedRead[T]) run(read func(context.Context) (T, error)) {
	for {
		s.mu.Lock()
		p := s.next
		s.next = nil
		if p == nil {
			s.running = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		p.result, p.err = read(p.ctx)
		close(p.done)
	}
}
