package chain

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestInFlightCallsMayStartDuringWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f inFlight
		if err := f.wait(t.Context()); err != nil {
			t.Errorf("wait without a call under way returned %v", err)
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
			t.Errorf("wait during a call returned %v, want a timeout", err)
		}
		if err := f.wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
