package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// gatedBatcher is a batcher whose runs wait, so that a test decides which calls share a batch.
type gatedBatcher struct {
	batcher[int, int]
	began chan gatedRun
	end   chan error // ends a run
}

// gatedRun is a run that has begun.
type gatedRun struct {
	ctx   context.Context
	batch []int
}

func newGatedBatcher() *gatedBatcher {
	g := &gatedBatcher{began: make(chan gatedRun), end: make(chan error)}
	g.run = func(ctx context.Context, batch []int) ([]int, error) {
		g.began <- gatedRun{ctx, batch}
		err := <-g.end
		out := make([]int, len(batch))
		for i, in := range batch {
			if out[i] = 10 * in; in == 13 {
				panic("13 is among them")
			}
		}
		return out, err
	}
	return g
}

// calls are calls under way, with their results.
type calls struct {
	sync.WaitGroup
	results sync.Map // of each call
}

// call starts a call, and returns when it waits or runs.
func (g *gatedBatcher) call(ctx context.Context, all *calls, in int) {
	before := g.queued()
	all.Go(func() {
		result := "panic"
		defer func() {
			_ = recover()
			all.results.Store(in, result)
		}()
		out, err := g.do(ctx, in)
		if result = strconv.Itoa(out); err != nil {
			result = err.Error()
		}
	})
	for g.queued() == before {
		time.Sleep(time.Millisecond)
	}
}

// queued returns how many calls wait, and how many runners work.
func (g *gatedBatcher) queued() [2]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return [2]int{len(g.waiting), g.running}
}

func (c *calls) all() map[int]string {
	out := map[int]string{}
	c.results.Range(func(in, result any) bool { out[in.(int)] = result.(string); return true })
	return out
}

func TestCallsThatWaitShareABatch(t *testing.T) {
	t.Parallel()
	g, all := newGatedBatcher(), &calls{}
	var batches [][]int
	g.call(t.Context(), all, 1)
	batches = append(batches, (<-g.began).batch)
	ended, cancel := context.WithCancel(t.Context())
	for _, in := range []int{2, 3, 4} {
		g.call(map[bool]context.Context{true: ended, false: t.Context()}[in == 3], all, in)
	}
	cancel() // call 3 ends before its batch begins
	g.end <- nil
	batches = append(batches, (<-g.began).batch)
	g.call(t.Context(), all, 5)
	g.end <- errors.New("broken")
	batches = append(batches, (<-g.began).batch)
	g.end <- nil
	all.Wait()
	if diff := cmp.Diff([][]int{{1}, {2, 4}, {5}}, batches); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]string{1: "10", 2: "broken", 3: "context canceled", 4: "broken", 5: "50"}, all.all()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	for g.queued() != [2]int{} { // the last runner ends
		time.Sleep(time.Millisecond)
	}
}

func TestABatchIsBoundedAndInOrderOfArrival(t *testing.T) {
	t.Parallel()
	g, all := newGatedBatcher(), &calls{}
	g.call(t.Context(), all, 0)
	<-g.began
	for in := range batchLimit + 1 {
		g.call(t.Context(), all, 100+in)
	}
	g.end <- nil
	first := (<-g.began).batch
	g.end <- nil
	second := (<-g.began).batch
	g.end <- nil
	all.Wait()
	if len(first) != batchLimit || !slices.IsSorted(first) || !cmp.Equal(second, []int{100 + batchLimit}) {
		t.Errorf("batches are %v and %v, want the first %d in order, then the last", first, second, batchLimit)
	}
}

// A batch goes on while any of its callers still waits for it.
func TestABatchEndsWithTheLastOfItsCallers(t *testing.T) {
	t.Parallel()
	g, all := newGatedBatcher(), &calls{}
	g.call(t.Context(), all, 1)
	<-g.began
	first, cancelFirst := context.WithCancel(t.Context())
	second, cancelSecond := context.WithCancel(t.Context())
	g.call(first, all, 2)
	g.call(second, all, 3)
	g.end <- nil
	ctx := (<-g.began).ctx
	cancelFirst()
	for all.all()[2] == "" { // the caller has left
		time.Sleep(time.Millisecond)
	}
	if err := ctx.Err(); err != nil {
		t.Errorf("the batch's context ends with its first caller: %v", err)
	}
	cancelSecond()
	<-ctx.Done()
	g.end <- ctx.Err()
	all.Wait()
}

// After a panic in a batch each call runs alone, so that only the one that causes it panics.
func TestAPanicInABatchIsItsCausesAlone(t *testing.T) {
	t.Parallel()
	g, all := newGatedBatcher(), &calls{}
	g.call(t.Context(), all, 1)
	<-g.began
	for _, in := range []int{12, 13, 14} {
		g.call(t.Context(), all, in)
	}
	g.end <- nil
	if run := <-g.began; len(run.batch) != 3 {
		t.Errorf("the batch is %v, want the three calls", run.batch)
	}
	g.end <- nil
	for range 3 {
		if run := <-g.began; len(run.batch) != 1 {
			t.Errorf("after the panic %v run together, want each alone", run.batch)
		}
		g.end <- nil
	}
	all.Wait()
	if diff := cmp.Diff(map[int]string{1: "10", 12: "120", 13: "panic", 14: "140"}, all.all()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
