package store

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// lossyConn is a connection to the database that can lose a statement, or only its
// answer, after which the client does not know that the statement was executed.
type lossyConn struct {
	net.Conn
	cut *atomic.Value // of string: "", "answer" or "statement"
}

// errCut is the error of a connection that a firewall resets.
var errCut = &net.OpError{Op: "read", Net: "unix", Err: syscall.ECONNRESET}

// Read loses the server's answer when it comes.
func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() == "answer" && err == nil {
		_ = c.Conn.Close()
		return 0, errCut
	}
	return n, err
}

// Write loses the client's statement.
func (c *lossyConn) Write(b []byte) (int, error) {
	if c.cut.Load() == "statement" {
		_ = c.Conn.Close()
		return 0, errCut
	}
	return c.Conn.Write(b)
}

// lossyStore returns another store on the database of s. cut selects what its only connection loses.
func lossyStore(t *testing.T, s *Store) (lossy *Store, cut *atomic.Value) {
	t.Helper()
	cut = &atomic.Value{}
	cut.Store("")
	cfg := s.Pool.Config()
	cfg.MaxConns = 1
	// Only statements of a step are cut. So the pool must not ping the connection first,
	// as it does after a second idle.
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &lossyConn{Conn: conn, cut: cut}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	ok(t, err)
	t.Cleanup(pool.Close)
	lossy, err = New(pool)
	ok(t, err)
	return lossy, cut
}

// If its answer is lost, a statement was executed completely. If the statement itself is
// lost, it changed nothing. Leases also lists leases whose grant was in the lost answer.
func TestStatementsOnALostConnectionAreExecutedCompletelyOrNotAtAll(t *testing.T) {
	t.Parallel()
	type step struct {
		// state is the submission's state before the step. If prepare is set, it creates
		// the submission instead.
		state   submission.State
		prepare func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease
		do      func(ctx context.Context, s *Store, l txmgr.Lease, w txmgr.Worker, n uint64) error
		// after reports whether the step was executed.
		after func(t *testing.T, s *Store, l txmgr.Lease, w txmgr.Worker, n uint64) bool
	}
	stateIs := func(want submission.State) func(*testing.T, *Store, txmgr.Lease, txmgr.Worker, uint64) bool {
		return func(t *testing.T, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) bool {
			return get(t, s, l.ID).State == want
		}
	}
	steps := map[string]step{
		"accept": {
			do: func(ctx context.Context, s *Store, _ txmgr.Lease, w txmgr.Worker, n uint64) error {
				_, err := s.Accept(ctx, withdrawal(n, n+1000), make([]byte, 32), &w.ID)
				return err
			},
			after: func(t *testing.T, s *Store, _ txmgr.Lease, w txmgr.Worker, n uint64) bool {
				got, err := s.FindRepeated(t.Context(), withdrawal(n, n+1000), make([]byte, 32)) // as the client does
				ok(t, err)
				parts := one[int](t, s, `SELECT (SELECT count(*) FROM submissions) + (SELECT count(*) FROM requests)
					+ (SELECT count(*) FROM reservations) + (SELECT count(*) FROM idempotency_keys)`)
				leases, err := s.Leases(t.Context(), w.ID)
				ok(t, err)
				if stored := got != nil; stored && (parts != 5 || len(leases) != 1) || !stored && (parts != 0 || len(leases) != 0) {
					t.Errorf("submission stored: %t, with %d rows and %d leases; want 5 and 1 if stored, else none", stored, parts, len(leases))
				}
				return got != nil
			},
		},
		"claim": {
			state: submission.Pending,
			do: func(ctx context.Context, s *Store, _ txmgr.Lease, w txmgr.Worker, _ uint64) error {
				_, err := s.Claim(ctx, w.ID, 10)
				return err
			},
			after: func(t *testing.T, s *Store, l txmgr.Lease, w txmgr.Worker, _ uint64) bool {
				leases, err := s.Leases(t.Context(), w.ID)
				ok(t, err)
				if len(leases) == 0 {
					return false
				}
				ok(t, s.Release(t.Context(), leases[0], 0, "")) // the process releases unknown leases
				return get(t, s, l.ID).State == submission.Processing
			},
		},
		"record an attempt": {
			state: submission.Processing,
			do: func(ctx context.Context, s *Store, l txmgr.Lease, _ txmgr.Worker, n uint64) error {
				return s.RecordAttempt(ctx, l, attempt(byte(n)))
			},
			after: func(t *testing.T, s *Store, l txmgr.Lease, w txmgr.Worker, _ uint64) bool {
				spent := one[int](t, s, `SELECT count(*) FROM spend_buckets`)
				ok(t, s.Release(t.Context(), l, 0, ""))
				c := claim(t, s, w.ID)[0]
				if len(c.Live) != spent {
					t.Errorf("%d attempts and %d spend buckets, want one of each or none", len(c.Live), spent)
				}
				return len(c.Live) == 1
			},
		},
		"complete": {
			state: submission.Processing,
			do: func(ctx context.Context, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) error {
				_, err := s.Complete(ctx, []submission.Landing{landing(l, 1)})
				return err
			},
			after: stateIs(submission.Completed),
		},
		"finalize": {
			state: submission.Completed,
			do: func(ctx context.Context, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) error {
				_, err := s.Finalize(ctx, []submission.Landing{landing(l, 1)}, []submission.ProofAPin{{Encoding: "plain", Signature: solana.Signature{1}}})
				return err
			},
			after: func(t *testing.T, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) bool {
				encoding, err := s.PinnedProofA(t.Context(), [32]byte{})
				ok(t, err)
				if got := get(t, s, l.ID).Finalized; got != (encoding != "") {
					t.Errorf("finalized: %t, pinned: %q", got, encoding)
				}
				return encoding != ""
			},
		},
		"fail": {
			state: submission.Processing,
			do: func(ctx context.Context, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) error {
				return s.Fail(ctx, l, refusal.New(refusal.RootNotFound, "stale"))
			},
			after: func(t *testing.T, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) bool {
				failed, reserved := get(t, s, l.ID).State == submission.Failed, one[int](t, s, `SELECT count(*) FROM reservations`)
				if failed != (reserved == 0) {
					t.Errorf("failed: %t, with %d nullifiers reserved; want none if failed", failed, reserved)
				}
				return failed
			},
		},
	}
	steps["complete a swap's first leg"] = step{
		prepare: func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			sub, err := s.Accept(t.Context(), swap(1, 0), nil, &w)
			ok(t, err)
			return sub.Lease()
		},
		do: steps["complete"].do,
		after: func(t *testing.T, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) bool {
			completed := get(t, s, l.ID).State == submission.Completed
			legs := one[int](t, s, `SELECT (SELECT count(*) FROM submissions WHERE parent = $1) + (SELECT count(*) FROM swaps)`, l.ID)
			if completed != (legs == 2) || !completed && legs != 0 {
				t.Errorf("completed: %t, with %d rows of the second leg; want 2 if completed, else none", completed, legs)
			}
			return completed
		},
	}
	steps["record an execution"] = step{
		prepare: func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return secondLegOf(t, s, submission.Processing, w, 1)
		},
		do: func(ctx context.Context, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) error {
			return s.RecordAttempt(ctx, l, attemptFor(1, txmgr.PurposeExecute))
		},
		after: func(t *testing.T, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) bool {
			quoted, attempts := phase(t, s, l.ID) == submission.PhaseQuoted, one[int](t, s, `SELECT count(*) FROM attempts`)
			if quoted != (attempts == 1) {
				t.Errorf("quoted: %t, with %d attempts; want 1 if quoted", quoted, attempts)
			}
			return quoted
		},
	}
	steps["complete a swap's second leg"] = step{
		prepare: func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return secondLegOf(t, s, submission.Processing, w, 1)
		},
		do: func(ctx context.Context, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) error {
			_, err := s.Complete(ctx, []submission.Landing{secondLegLanding(l, 1, submission.PhaseRefunded)})
			return err
		},
		after: func(t *testing.T, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) bool {
			completed, refunded := get(t, s, l.ID).State == submission.Completed, phase(t, s, l.ID) == submission.PhaseRefunded
			if completed != refunded {
				t.Errorf("completed: %t, refunded: %t; want both or neither", completed, refunded)
			}
			return completed
		},
	}
	steps["end a swap"] = step{
		prepare: func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return secondLegOf(t, s, submission.Completed, w, 1)
		},
		do: func(ctx context.Context, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) error {
			end := secondLegLanding(l, 1, submission.PhaseExecuted)
			end.Returned = 5
			_, err := s.Finalize(ctx, []submission.Landing{end}, nil)
			return err
		},
		after: func(t *testing.T, s *Store, l txmgr.Lease, _ txmgr.Worker, _ uint64) bool {
			ended, spent := one[bool](t, s, `SELECT ended FROM swaps`), one[int](t, s, `SELECT COALESCE(sum(lamports), 0) FROM spend_buckets`)
			if got := get(t, s, l.ID).Finalized; got != ended || ended != (spent == -5) {
				t.Errorf("finalized: %t, ended: %t, %d lamports spent; want true, true and -5, or no change", got, ended, spent)
			}
			return ended
		},
	}
	steps["fail both legs"] = step{
		prepare: func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			first, _ := bothLegs(t, s, w, 1)
			ok(t, s.Reopen(t.Context(), first))
			return first
		},
		do: steps["fail"].do,
		after: func(t *testing.T, s *Store, l txmgr.Lease, w txmgr.Worker, n uint64) bool {
			failed, legs := steps["fail"].after(t, s, l, w, n), one[int](t, s, `SELECT count(*) FROM submissions WHERE state = 'failed'`)
			if failed != (legs == 2) || !failed && legs != 0 {
				t.Errorf("first leg failed: %t, failed legs: %d; want 2 or none", failed, legs)
			}
			return failed
		},
	}
	for name, step := range steps {
		for loss, wantExecuted := range map[string]bool{"answer": true, "statement": false} {
			t.Run(name+", "+loss+" lost", func(t *testing.T) {
				t.Parallel()
				s := open(t)
				lossy, cut := lossyStore(t, s)
				w := txmgr.Worker{ID: worker(t, s)}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				// Run the step once without a lease, so that the connection has prepared its statements.
				unknownWorker := txmgr.Worker{ID: w.ID}
				unknownWorker.ID[0]++
				_ = step.do(ctx, lossy, txmgr.Lease{ID: unknownWorker.ID}, unknownWorker, 900)
				exec(t, s, `TRUNCATE submissions, requests, reservations, idempotency_keys, attempts, spend_buckets, proof_signs, swaps`)
				var l txmgr.Lease
				switch {
				case step.prepare != nil:
					l = step.prepare(t, s, w.ID)
				case step.state != "":
					l = stateOf(t, s, step.state, w.ID, 1)
				}
				cut.Store(loss)
				if err := step.do(ctx, lossy, l, w, 1); err == nil {
					t.Fatal("the step succeeds although its " + loss + " was lost")
				} else if r, ok := refusal.As(err); !ok || r.Code != refusal.DatabaseUnavailable {
					t.Errorf("the step returns %v, want database_unavailable", err)
				}
				cut.Store("")
				if executed := step.after(t, s, l, w, 1); executed != wantExecuted {
					t.Errorf("step executed: %t, want %t", executed, wantExecuted)
				}
			})
		}
	}
}
