package chain

import (
	"context"
	"sync"
)

// inFlight counts calls under way. Unlike with a sync.WaitGroup, more calls may start
// during a wait.
type inFlight struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // nil while n is 0
}

// run starts fn in a goroutine, and counts it until it returns.
func (f *inFlight) run(fn func()) {
	f.mu.Lock()
	if f.n++; f.n == 1 {
		f.idle = make(chan struct{})
	}
	f.mu.Unlock()
	go func() {
		defer f.done()
		fn()
	}()
}

func (f *inFlight) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 {
		close(f.idle)
		f.idle = nil
	}
}

// wait waits until no call is under way. It returns the context's error if the context ends first.
func (f *inFlight) wait(ctx context.Context) error {
	f.mu.Lock()
	idle := f.idle
	f.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
