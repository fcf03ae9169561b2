package store

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

func TestWaitingCallersShareARead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s sharedRead[int]
		reads, release := 0, make(chan struct{})
		read := func(ctx context.Context) (int, error) {
			reads++
			n := reads
			select {
			case <-release:
				return n, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		var wg sync.WaitGroup
		want := func(n int) {
			wg.Go(func() {
				if got, err := s.get(t.Context(), read); err != nil || got != n {
					t.Errorf("a caller got read %d (%v), want %d", got, err, n)
				}
			})
			synctest.Wait()
		}
		want(1)
		unneeded, leaveEarly := context.WithCancel(t.Context())
		wg.Go(func() { _, _ = s.get(unneeded, read) })
		synctest.Wait()
		leaveEarly()
		synctest.Wait()
		for range 20 { // a read that runs may have missed what these callers wait for
			want(2)
		}
		leaving, leave := context.WithCancel(t.Context())
		var left error
		wg.Go(func() { _, left = s.get(leaving, read) })
		synctest.Wait()
		leave()
		synctest.Wait()
		if !errors.Is(left, context.Canceled) {
			t.Errorf("a caller that left got %v, want its context's error", left)
		}
		release <- struct{}{}
		synctest.Wait()
		release <- struct{}{}
		wg.Wait()
		if reads != 2 {
			t.Errorf("22 callers made %d reads, want 2", reads)
		}

		leaving, leave = context.WithCancel(t.Context())
		wg.Go(func() { _, left = s.get(leaving, read) })
		synctest.Wait()
		leave() // the read ends with its last caller
		wg.Wait()
		synctest.Wait()
		want(4)
		release <- struct{}{}
		wg.Wait()
	})
}
