package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// benchBatch is how many rows a batched write has.
const benchBatch = 32

// bench is a store that contains rows, and a live worker.
type bench struct {
	s      *Store
	worker uuid.UUID
	next   atomic.Uint64 // the next unused number for notes and signatures
}

func (b *bench) accept(ctx context.Context, worker *uuid.UUID) (txmgr.Lease, error) {
	n := b.next.Add(1)
	sub := withdrawal(2*n, 2*n+1)
	sub.RootSeq = n / 50
	got, err := b.s.Accept(ctx, sub, nil, worker)
	if err != nil {
		return txmgr.Lease{}, err
	}
	return got.Lease(), nil
}

// leased accepts n submissions with leases for the worker.
func (b *bench) leased(ctx context.Context, n int) ([]txmgr.Lease, error) {
	leases := make([]txmgr.Lease, n)
	return leases, across(16, n, func(i int) (err error) {
		leases[i], err = b.accept(ctx, &b.worker)
		return err
	})
}

func (b *bench) attempt() txmgr.Attempt {
	a := attempt(0)
	binary.BigEndian.PutUint64(a.Signature[:], b.next.Add(1))
	a.Raw = make([]byte, 1000)
	return a
}

func (b *bench) landings(leases []txmgr.Lease) []submission.Landing {
	out := make([]submission.Landing, len(leases))
	for i, l := range leases {
		out[i] = landing(l, 1)
		out[i].LeafIndices = []uint64{1, 2}
	}
	return out
}

// across runs f for each number below n, in as many goroutines as there are clients.
func across(clients, n int, f func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	for range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}

// batches runs f over n rows, benchBatch at a time.
func batches(clients, n int, f func(from, to int) error) error {
	return across(clients, (n+benchBatch-1)/benchBatch, func(i int) error { return f(i*benchBatch, min((i+1)*benchBatch, n)) })
}

// BenchmarkStore measures each operation in rows a second. -benchtime=3000x gives
// a good number of rows.
func BenchmarkStore(b *testing.B) {
	for _, rows := range []int{1_000, 100_000} {
		s := openOn(b, pgtest.URL(b))
		bm := &bench{s: s, worker: fill(b, s, rows)}
		if _, err := s.Heartbeat(b.Context(), txmgr.Worker{ID: bm.worker}, time.Hour); err != nil {
			b.Fatal(err)
		}
		bm.next.Store(1 << 32)
		for _, clients := range []int{1, 16} {
			for _, op := range bm.operations(clients) {
				b.Run(fmt.Sprintf("%s/rows=%d/clients=%d", op.name, rows, clients), func(b *testing.B) {
					run, err := op.prepare(b.Context(), b.N)
					if err != nil {
						b.Fatal(err)
					}
					b.ResetTimer()
					began := time.Now()
					if err := run(); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "rows/s")
				})
			}
		}
	}
}

type benchOperation struct {
	name    string
	prepare func(ctx context.Context, n int) (run func() error, err error)
}

func (b *bench) operations(clients int) []benchOperation {
	return []benchOperation{
		{"Accept", func(ctx context.Context, n int) (func() error, error) {
			return func() error {
				return across(clients, n, func(int) error { _, err := b.accept(ctx, &b.worker); return err })
			}, nil
		}},
		{"Claim", func(ctx context.Context, n int) (func() error, error) {
			// Defer the rows that fill made, so that the claims find the rows accepted below.
			if _, err := b.s.Pool.Exec(ctx, `UPDATE submissions SET due_at = now() + interval '1 hour' WHERE state IN ('pending', 'processing') AND lease_owner IS NULL`); err != nil {
				return nil, err
			}
			err := across(16, n, func(int) error { _, err := b.accept(ctx, nil); return err })
			return func() error {
				return batches(clients, n, func(from, to int) error { _, err := b.s.Claim(ctx, b.worker, to-from); return err })
			}, err
		}},
		{"RecordAttempt", func(ctx context.Context, n int) (func() error, error) {
			leases, err := b.leased(ctx, n)
			return func() error {
				return across(clients, n, func(i int) error { return b.s.RecordAttempt(ctx, leases[i], b.attempt()) })
			}, err
		}},
		{"Complete", func(ctx context.Context, n int) (func() error, error) {
			leases, err := b.leased(ctx, n)
			return func() error {
				return batches(clients, n, func(from, to int) error {
					return oneLease(b.s.Complete(ctx, b.landings(leases[from:to])))
				})
			}, err
		}},
		{"Finalize", func(ctx context.Context, n int) (func() error, error) {
			leases, err := b.leased(ctx, n)
			if err != nil {
				return nil, err
			}
			err = batches(16, n, func(from, to int) error { return oneLease(b.s.Complete(ctx, b.landings(leases[from:to]))) })
			return func() error {
				return batches(clients, n, func(from, to int) error {
					return oneLease(b.s.Finalize(ctx, b.landings(leases[from:to]), nil))
				})
			}, err
		}},
		{"Backlog", func(ctx context.Context, n int) (func() error, error) {
			return func() error {
				return across(clients, n, func(int) error { _, err := b.s.Backlog(ctx); return err })
			}, nil
		}},
		{"QueueByRoot", func(ctx context.Context, n int) (func() error, error) {
			return func() error {
				return across(clients, n, func(int) error { _, err := b.s.QueueByRoot(ctx, testPool, 0); return err })
			}, nil
		}},
		{"FreeDeadProcesses", func(ctx context.Context, n int) (func() error, error) {
			return func() error {
				return across(clients, n, func(int) error { _, err := b.s.FreeDeadProcesses(ctx); return err })
			}, nil
		}},
	}
}

// BenchmarkPlansAtAMillion checks that every statement uses its indexes in a database
// with a million finished submissions. It takes minutes to fill the database.
func BenchmarkPlansAtAMillion(b *testing.B) {
	s := openOn(b, pgtest.URL(b))
	w := fill(b, s, 1_000_000)
	for b.Loop() {
		wantIndexScans(b, s, statements(s, w, b))
	}
}
