package chain

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestInFlightMayBeWaitedForWhileMoreBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f inFlight
		if err := f.wait(t.Context()); err != nil {
			t.Errorf("nothing is under way, and the wait says %v", err)
		}
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				f.run(func() { time.Sleep(5 * time.Millisecond) })
				if err := f.wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		f.run(func() { time.Sleep(time.Second) })
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := f.wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait says %v while one is under way", err)
		}
		if err := f.wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
