package store

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// readOnce returns the value that ReadOnce selects: the shared one, if it is accepted, or fresh.
func readOnce(t *testing.T, s *Store, name, fresh string, accept func(age time.Duration) bool) (got string) {
	t.Helper()
	s.ReadOnce(t.Context(), name, func(value []byte, age time.Duration) bool {
		if !accept(age) {
			return false
		}
		got = string(value)
		return true
	}, func(context.Context) []byte {
		got = fresh
		return []byte(fresh)
	})
	return got
}

// patient opens a store that waits for others as long as a busy machine needs.
func patient(t *testing.T) *Store {
	t.Helper()
	s := open(t)
	s.readOnceWait = time.Minute
	return s
}

func anyValue(time.Duration) bool { return true }

func TestAFleetReadsOnce(t *testing.T) {
	t.Parallel()
	s := patient(t)
	var reads, uses atomic.Int64
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			s.ReadOnce(t.Context(), "tree", func(value []byte, _ time.Duration) bool {
				if string(value) != "leaves" {
					t.Errorf("the shared value is %q, want leaves", value)
				}
				uses.Add(1)
				return true
			}, func(context.Context) []byte {
				reads.Add(1)
				return []byte("leaves")
			})
		})
	}
	running.Wait()
	if reads.Load() != 1 || uses.Load() != 7 {
		t.Errorf("%d processes read and %d use what was read, want 1 and 7", reads.Load(), uses.Load())
	}
}

func TestASharedValueIsUsedOnlyIfItFits(t *testing.T) {
	t.Parallel()
	s := patient(t)
	readOnce(t, s, "tree", "first", anyValue)
	for _, step := range []struct {
		what, name, want string
		accept           func(time.Duration) bool
	}{
		{"another name has a value of its own", "blockhash", "fresh", anyValue},
		{"the value is used", "tree", "first", func(age time.Duration) bool { return age < time.Minute }},
		{"a value that does not fit is replaced", "tree", "fresh", func(time.Duration) bool { return false }},
		{"the replacement is used", "tree", "fresh", anyValue},
	} {
		if got := readOnce(t, s, step.name, "fresh", step.accept); got != step.want {
			t.Errorf("%s: got %q, want %q", step.what, got, step.want)
		}
	}
	s.ReadOnce(t.Context(), "tree", func([]byte, time.Duration) bool { return false }, func(context.Context) []byte { return nil })
	if got := readOnce(t, s, "tree", "again", anyValue); got != "fresh" {
		t.Errorf("after a read that is not shared, the shared value is %q, want fresh", got)
	}
}

// A blockhash is used for a second, so the time that its read took counts.
func TestASharedValueIsAsOldAsItsRead(t *testing.T) {
	t.Parallel()
	s := patient(t)
	const took = 100 * time.Millisecond
	s.ReadOnce(t.Context(), "tree", nil, func(context.Context) []byte {
		time.Sleep(took)
		return []byte("leaves")
	})
	readOnce(t, s, "tree", "", func(age time.Duration) bool {
		if age < took {
			t.Errorf("the age is %s, want at least %s", age, took)
		}
		return true
	})
	one[int](t, s, `WITH ahead AS (UPDATE chain_reads SET read_at = clock_timestamp() + interval '1 minute' RETURNING 1) SELECT count(*) FROM ahead`)
	if got := readOnce(t, s, "tree", "fresh", anyValue); got != "fresh" {
		t.Errorf("a value that was read in the future, as after a failover, is used: %q", got)
	}
}

func TestAReadGoesOnWithoutTheLock(t *testing.T) {
	t.Parallel()
	s := open(t)
	held, release := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	slow.Go(func() {
		s.ReadOnce(t.Context(), "tree", nil, func(context.Context) []byte {
			close(held)
			<-release
			return []byte("slow")
		})
	})
	<-held
	one[int](t, s, `WITH shared AS (INSERT INTO chain_reads (name, value, read_at) VALUES ('tree', 'shared', clock_timestamp()) RETURNING 1) SELECT count(*) FROM shared`)
	if got := readOnce(t, s, "tree", "own", anyValue); got != "shared" {
		t.Errorf("while another process reads for long, got %q, want what was shared before", got)
	}
	if got := readOnce(t, s, "tree", "own", func(time.Duration) bool { return false }); got != "own" {
		t.Errorf("while another process reads for long, got %q, want its own read", got)
	}
	close(release)
	slow.Wait()
	s.Pool.Close()
	if got := readOnce(t, s, "tree", "own", anyValue); got != "own" {
		t.Errorf("without the database, got %q, want its own read", got)
	}
}

func TestAProcessAloneSharesNothing(t *testing.T) {
	t.Parallel()
	s := patient(t)
	shared := func() int {
		t.Helper()
		readOnce(t, s, "tree", "leaves", func(time.Duration) bool { return false })
		return one[int](t, s, `WITH gone AS (DELETE FROM chain_reads RETURNING 1) SELECT count(*) FROM gone`)
	}
	w, other := uuid.New(), uuid.New()
	heartbeat(t, s, w, time.Minute)
	if n := shared(); n != 0 {
		t.Errorf("a process alone shares %d values, want none", n)
	}
	heartbeat(t, s, other, time.Minute)
	heartbeat(t, s, w, time.Minute)
	if n := shared(); n != 1 {
		t.Errorf("one of two processes shares %d values, want 1", n)
	}
	expireWorker(t, s, other)
	heartbeat(t, s, w, time.Minute)
	if n := shared(); n != 0 {
		t.Errorf("a process whose peer is dead shares %d values, want none", n)
	}
}
