package batch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/batch"
)

var errOdd = errors.New("odd")

// doubler doubles numbers, a second for each batch, and records the sizes of the batches. It fails for
// 13, and panics for 666.
type doubler struct {
	mu    sync.Mutex
	sizes []int
}

func (d *doubler) run(_ context.Context, in []int) ([]int, error) {
	d.mu.Lock()
	d.sizes = append(d.sizes, len(in))
	d.mu.Unlock()
	time.Sleep(time.Second)
	out := make([]int, len(in))
	for i, n := range in {
		switch n {
		case 13:
			return nil, errOdd
		case 666:
			panic(n)
		}
		out[i] = 2 * n
	}
	return out, nil
}

// each calls Do for every number, a millisecond after the other, and returns how long all took.
func each(t *testing.T, q *batch.Queue[int, int], numbers []int, check func(n, got int, err error, panicked bool)) time.Duration {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for _, n := range numbers {
		wg.Go(func() {
			panicked := true
			var got int
			var err error
			defer func() {
				_ = recover()
				check(n, got, err, panicked)
			}()
			got, err = q.Do(t.Context(), n)
			panicked = false
		})
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	return time.Since(began).Truncate(time.Second)
}

func TestCallsThatWaitRunTogether(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		numbers        []int
		runners, limit int
		wantSizes      []int
		want           time.Duration
	}{
		"a lone call runs at once":                {[]int{1}, 1, 9, []int{1}, time.Second},
		"those that wait for the first are one":   {[]int{1, 2, 3, 4, 5}, 1, 9, []int{1, 4}, 2 * time.Second},
		"two run at once":                         {[]int{1, 2, 3, 4, 5}, 2, 9, []int{1, 1, 3}, 2 * time.Second},
		"no batch is larger than the limit":       {[]int{1, 2, 3, 4, 5, 6}, 1, 3, []int{1, 3, 2}, 3 * time.Second},
		"a failure is that of all of its batch":   {[]int{1, 13, 3}, 1, 9, []int{1, 2}, 2 * time.Second},
		"a panic is that of the call that has it": {[]int{1, 666, 3}, 1, 9, []int{1, 2, 1, 1}, 3 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &doubler{}
				q := &batch.Queue[int, int]{Run: d.run, Runners: test.runners, Limit: test.limit}
				took := each(t, q, test.numbers, func(n, got int, err error, panicked bool) {
					failed := test.numbers[min(1, len(test.numbers)-1)] == 13 && n != 1
					if panicked != (n == 666) || !panicked && failed != errors.Is(err, errOdd) || !panicked && !failed && got != 2*n {
						t.Errorf("%d became %d, error %v, panic %t", n, got, err, panicked)
					}
				})
				if diff := cmp.Diff(test.wantSizes, d.sizes); diff != "" || took != test.want {
					t.Errorf("took %s, want %s; sizes of batches (-want +got):\n%s", took, test.want, diff)
				}
			})
		})
	}
}

func TestACallWhoseContextEndsIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{}
		q := &batch.Queue[int, int]{Run: d.run, Runners: 1, Limit: 9}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = q.Do(t.Context(), 1) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := q.Do(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that the context ended", err)
		}
		if got, err := q.Do(t.Context(), 3); got != 6 || err != nil {
			t.Errorf("3 became %d, error %v", got, err)
		}
		wg.Wait()
		if diff := cmp.Diff([]int{1, 1}, d.sizes); diff != "" {
			t.Errorf("sizes of batches (-want +got):\n%s", diff)
		}
	})
}

// A batch goes on while any of its callers still waits for it.
func TestABatchEndsWithTheLastOfItsCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var contexts []context.Context
		q := &batch.Queue[int, int]{Runners: 1, Limit: 9, Run: func(ctx context.Context, in []int) ([]int, error) {
			contexts = append(contexts, ctx)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return in, ctx.Err()
		}}
		go func() { _, _ = q.Do(t.Context(), 1) }()
		synctest.Wait()
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		go func() { _, _ = q.Do(first, 2) }()
		go func() { _, _ = q.Do(second, 3) }()
		synctest.Wait()
		if n := q.Waiting(); n != 2 {
			t.Errorf("%d calls wait, want 2", n)
		}
		time.Sleep(time.Second + time.Millisecond)
		cancelFirst()
		synctest.Wait()
		if err := contexts[1].Err(); err != nil {
			t.Errorf("the batch's context ends with its first caller: %v", err)
		}
		cancelSecond()
		synctest.Wait()
		if contexts[1].Err() == nil {
			t.Error("the batch's context goes on without a caller")
		}
	})
}

func TestABatchHasTheLatestDeadlineOfItsCallers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		timeouts []time.Duration // 0 for none
		want     time.Duration
	}{
		"a lone call keeps its deadline":   {[]time.Duration{time.Minute}, time.Minute},
		"the latest of several":            {[]time.Duration{time.Minute, time.Hour, time.Minute}, time.Hour},
		"none if a call waits without one": {[]time.Duration{time.Minute, 0}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var left []time.Duration
				q := &batch.Queue[int, int]{Runners: 1, Limit: 9, Run: func(ctx context.Context, in []int) ([]int, error) {
					at, ok := ctx.Deadline()
					if !ok {
						at = began
					}
					left = append(left, at.Sub(began))
					time.Sleep(time.Second)
					return in, nil
				}}
				if len(tt.timeouts) > 1 { // a call that makes the others wait for each other
					go func() { _, _ = q.Do(t.Context(), 0) }()
					synctest.Wait()
				}
				for _, d := range tt.timeouts {
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if d > 0 {
						ctx, cancel = context.WithTimeout(ctx, d)
					}
					t.Cleanup(cancel)
					go func() { _, _ = q.Do(ctx, 1) }()
				}
				time.Sleep(time.Minute / 2)
				synctest.Wait()
				if got := left[len(left)-1]; got != tt.want {
					t.Errorf("the batch may take %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// While a batch hangs, each call waits for Stall and runs alone, whenever it comes. Afterwards calls share
// batches again.
func TestCallsDoNotWaitForABatchThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		q := &batch.Queue[int, int]{Runners: 1, Limit: 9, Stall: time.Second, Run: func(_ context.Context, in []int) ([]int, error) {
			mu.Lock()
			sizes = append(sizes, len(in))
			mu.Unlock()
			if in[0] == 0 {
				time.Sleep(30 * time.Second)
			}
			time.Sleep(time.Millisecond)
			return in, nil
		}}
		go func() { _, _ = q.Do(t.Context(), 0) }()
		synctest.Wait()
		for n := 1; n < 20; n++ {
			began := time.Now()
			if _, err := q.Do(t.Context(), n); err != nil || time.Since(began) > 1100*time.Millisecond {
				t.Errorf("call %d took %s, error %v", n, time.Since(began), err)
			}
		}
		time.Sleep(time.Minute)
		if q.Waiting() != 0 || len(sizes) != 20 {
			t.Errorf("%d calls wait and %d ran, want 0 and 20", q.Waiting(), len(sizes))
		}
		sizes = nil
		each(t, q, []int{0, 1, 2, 3}, func(int, int, error, bool) {})
		if diff := cmp.Diff([]int{1, 1, 1, 1}, sizes); diff != "" {
			t.Errorf("sizes beside a batch that hangs (-want +got):\n%s", diff)
		}
		sizes = nil
		each(t, q, []int{0}, func(int, int, error, bool) {})
		q.Stall = 0
		each(t, q, []int{0, 1, 2, 3}, func(int, int, error, bool) {})
		if diff := cmp.Diff([]int{1, 1, 3}, sizes); diff != "" {
			t.Errorf("sizes without a bound (-want +got):\n%s", diff)
		}
	})
}
