package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// oneLease returns the error of a batched write for one lease.
func oneLease(lost []txmgr.Lease, err error) error {
	if err == nil && len(lost) > 0 {
		return txmgr.ErrLeaseLost
	}
	return err
}

// moves returns the store's write for each move. A claim needs a row without a
// lease.
func moves(ctx context.Context, s *Store) map[Move]func(l txmgr.Lease, worker uuid.UUID) error {
	return map[Move]func(txmgr.Lease, uuid.UUID) error{
		MoveClaim: func(l txmgr.Lease, w uuid.UUID) error {
			for _, claim := range []func(context.Context, uuid.UUID, int) ([]*txmgr.Job, error){s.Claim, s.ClaimSwapExecutions, s.ClaimLanded} {
				got, err := claim(ctx, w, 10)
				if err != nil {
					return err
				}
				for _, c := range got {
					if c.ID == l.ID {
						return nil
					}
				}
			}
			return txmgr.ErrLeaseLost
		},
		MoveAttempt: func(l txmgr.Lease, _ uuid.UUID) error { return s.RecordAttempt(ctx, l, attempt(2)) },
		MoveRelease: func(l txmgr.Lease, _ uuid.UUID) error { return s.Release(ctx, l, 0, "") },
		MoveComplete: func(l txmgr.Lease, _ uuid.UUID) error {
			return oneLease(s.Complete(ctx, []submission.Landing{landing(l, 1)}))
		},
		MoveFinalize: func(l txmgr.Lease, _ uuid.UUID) error {
			return oneLease(s.Finalize(ctx, []submission.Landing{landing(l, 1)}, nil))
		},
		MoveReopen: func(l txmgr.Lease, _ uuid.UUID) error { return s.Reopen(ctx, l) },
		MoveFail: func(l txmgr.Lease, _ uuid.UUID) error {
			return s.Fail(ctx, l, refusal.New(refusal.ProgramError, "refused"))
		},
	}
}

// stateOf creates a submission in the state, by the moves that lead there, leased
// to the worker if the state has a lease.
func stateOf(t *testing.T, s *Store, state submission.State, w uuid.UUID, n uint64) txmgr.Lease {
	t.Helper()
	sub := accept(t, s, withdrawal(n, 0), nil)
	if state == submission.Pending {
		return txmgr.Lease{ID: sub.ID}
	}
	claimed := claim(t, s, w)
	l := claimed[len(claimed)-1].Lease
	switch state {
	case submission.Completed:
		complete(t, s, landing(l, 1))
	case submission.Failed:
		ok(t, s.Fail(t.Context(), l, refusal.New(refusal.RootNotFound, "stale")))
	case submission.Pending, submission.Processing:
	}
	return l
}

func TestAMoveIsWrittenExactlyWhenTheStateAllowsIt(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	all := moves(ctx, s)
	n := uint64(0)
	for _, state := range States() {
		for _, move := range Moves() {
			n++
			w := worker(t, s)
			l := stateOf(t, s, state, w, n)
			if move == MoveClaim && state != submission.Pending && state != submission.Failed {
				ok(t, s.Release(ctx, l, 0, "")) // the state is the same, without a lease
			}
			before := dump(t, s, l.ID)
			err := all[move](l, w)
			want, allowed := Next(state, move)
			switch {
			case allowed && err != nil:
				t.Errorf("%s from %s returns %v, want no error", move, state, err)
			case allowed:
				if got := get(t, s, l.ID).State; got != want {
					t.Errorf("%s leads from %s to %s, want %s", move, state, got, want)
				}
			case !errors.Is(err, txmgr.ErrLeaseLost):
				t.Errorf("%s from %s returns %v, want ErrLeaseLost", move, state, err)
			default:
				if diff := cmp.Diff(before, dump(t, s, l.ID)); diff != "" {
					t.Errorf("%s from %s is refused, but changed rows (-before +after):\n%s", move, state, diff)
				}
			}
		}
	}
	l := stateOf(t, s, submission.Completed, worker(t, s), n+1)
	finalize(t, s, landing(l, 1))
	for move, write := range all {
		if err := write(l, worker(t, s)); !errors.Is(err, txmgr.ErrLeaseLost) {
			t.Errorf("%s of a finalized submission returns %v, want ErrLeaseLost", move, err)
		}
	}
}

// dump returns all stored rows of a submission, and the spend buckets.
func dump(t *testing.T, s *Store, id uuid.UUID) string {
	t.Helper()
	return one[string](t, s, `SELECT jsonb_pretty(jsonb_build_object(
		'row', (SELECT to_jsonb(s) FROM submissions s WHERE id = $1),
		'attempts', (SELECT jsonb_agg(a ORDER BY signature) FROM attempts a WHERE submission_id = $1),
		'reservations', (SELECT jsonb_agg(v ORDER BY nullifier) FROM reservations v WHERE submission_id = $1),
		'pins', (SELECT jsonb_agg(p) FROM proof_signs p),
		'legs', (SELECT jsonb_agg(c) FROM submissions c WHERE parent = $1),
		'swaps', (SELECT jsonb_agg(w ORDER BY id) FROM swaps w),
		'spent', (SELECT jsonb_agg(b ORDER BY bucket, shard, transfer) FROM spend_buckets b)))`, id)
}

func TestNothingIsWrittenUnderALostLease(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	// takeLease ends the owner's lease of the submission.
	takeLease := map[string]func(t *testing.T, s *Store, l txmgr.Lease, owner uuid.UUID){
		"freed": func(t *testing.T, s *Store, _ txmgr.Lease, owner uuid.UUID) {
			expireWorker(t, s, owner)
			if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 1 {
				t.Fatalf("FreeDeadProcesses frees %d leases (%v), want 1", n, err)
			}
		},
		"freed and claimed by another worker": func(t *testing.T, s *Store, l txmgr.Lease, owner uuid.UUID) {
			expireWorker(t, s, owner)
			if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 1 {
				t.Fatalf("FreeDeadProcesses frees %d leases (%v), want 1", n, err)
			}
			claimByAnother(t, s, l.ID)
		},
		"retired": func(t *testing.T, s *Store, _ txmgr.Lease, owner uuid.UUID) {
			if n, err := s.ReleaseAll(ctx, owner); err != nil || n != 1 {
				t.Fatalf("ReleaseAll frees %d leases (%v), want 1", n, err)
			}
		},
		// The epoch is still the same: only the missing owner shows that the lease is lost.
		"released": func(t *testing.T, s *Store, l txmgr.Lease, _ uuid.UUID) { ok(t, s.Release(ctx, l, 0, "")) },
		"released and claimed by another worker": func(t *testing.T, s *Store, l txmgr.Lease, _ uuid.UUID) {
			ok(t, s.Release(ctx, l, 0, ""))
			claimByAnother(t, s, l.ID)
		},
	}
	for name, take := range takeLease {
		for _, state := range []submission.State{submission.Processing, submission.Completed} {
			t.Run(fmt.Sprintf("%s while %s", name, state), func(t *testing.T) {
				t.Parallel()
				s, ctx := open(t), t.Context()
				w := worker(t, s)
				l := stateOf(t, s, submission.Processing, w, 1)
				ok(t, s.RecordAttempt(ctx, l, attempt(1)))
				if state == submission.Completed {
					complete(t, s, landing(l, 1))
				}
				take(t, s, l, w)
				heartbeat(t, s, w, time.Minute) // the worker is live again and does not know that its lease is lost
				before := dump(t, s, l.ID)
				writes := moves(ctx, s)
				delete(writes, MoveClaim)
				writes["mark rejected"] = func(l txmgr.Lease, _ uuid.UUID) error {
					return s.MarkAttemptRejected(ctx, l, solana.Signature{1})
				}
				writes["mark dead"] = func(l txmgr.Lease, _ uuid.UUID) error {
					return s.MarkAttemptsDead(ctx, l, []txmgr.DeadAttempt{{Signature: solana.Signature{1}}})
				}
				writes["finalize with a pin"] = func(l txmgr.Lease, _ uuid.UUID) error {
					return oneLease(s.Finalize(ctx, []submission.Landing{landing(l, 1)}, []submission.ProofAPin{{Encoding: "plain", Signature: solana.Signature{1}}}))
				}
				for move, write := range writes {
					if err := write(l, w); !errors.Is(err, txmgr.ErrLeaseLost) {
						t.Errorf("%s under a lost lease returns %v, want ErrLeaseLost", move, err)
					}
				}
				if diff := cmp.Diff(before, dump(t, s, l.ID)); diff != "" {
					t.Errorf("writes under a lost lease changed rows (-before +after):\n%s", diff)
				}
				// Without an attempt that can land, only the lost lease prevents a failure.
				exec(t, s, `UPDATE attempts SET dead = true`)
				if err := writes[MoveFail](l, w); !errors.Is(err, txmgr.ErrLeaseLost) {
					t.Errorf("Fail without live attempts under a lost lease returns %v, want ErrLeaseLost", err)
				}
				if n := one[int](t, s, `SELECT count(*) FROM reservations`); n != 1 {
					t.Errorf("%d nullifiers are reserved, want 1", n)
				}
			})
		}
	}
}

// claimByAnother claims the submission for a new worker.
func claimByAnother(t *testing.T, s *Store, id uuid.UUID) {
	t.Helper()
	if err := moves(t.Context(), s)[MoveClaim](txmgr.Lease{ID: id}, worker(t, s)); err != nil {
		t.Fatalf("claim for another worker: %v", err)
	}
}

func TestAnExpiredWorkerRecordsNoAttempt(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	expireWorker(t, s, w) // its leases are not freed yet
	if err := s.RecordAttempt(ctx, l, attempt(1)); !errors.Is(err, txmgr.ErrLeaseLost) {
		t.Errorf("RecordAttempt returns %v, want ErrLeaseLost", err)
	}
	if n := one[int](t, s, `SELECT (SELECT count(*) FROM attempts) + (SELECT count(*) FROM spend_buckets)`); n != 0 {
		t.Errorf("%d rows were written, want 0", n)
	}
	// The expired worker may record a landing: it is a fact, and no other worker has the lease.
	complete(t, s, landing(l, 1))
}

func TestASubmissionFailsOnlyWhenEveryAttemptIsDead(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	c := acceptLeased(t, s, withdrawal(1, 2))
	for n := byte(1); n <= 2; n++ {
		ok(t, s.RecordAttempt(ctx, c.Lease, attempt(n)))
	}
	why := refusal.New(refusal.ProgramError, "refused")
	if err := s.Fail(ctx, c.Lease, why); !errors.Is(err, txmgr.ErrLeaseLost) {
		t.Fatalf("Fail with two live attempts returns %v, want ErrLeaseLost", err)
	}
	ok(t, s.MarkAttemptsDead(ctx, c.Lease, []txmgr.DeadAttempt{{Signature: solana.Signature{1}, Paid: 5000}}))
	if err := s.Fail(ctx, c.Lease, why); !errors.Is(err, txmgr.ErrLeaseLost) {
		t.Fatalf("Fail with one live attempt returns %v, want ErrLeaseLost", err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM reservations`); n != 2 {
		t.Fatalf("%d nullifiers are reserved after the refused failure, want 2", n)
	}
	ok(t, s.MarkAttemptsDead(ctx, c.Lease, []txmgr.DeadAttempt{{Signature: solana.Signature{2}}}))
	ok(t, s.Fail(ctx, c.Lease, why))
	if n := one[int](t, s, `SELECT count(*) FROM reservations`); n != 0 {
		t.Errorf("%d nullifiers are reserved after the failure, want 0", n)
	}
}

// Fail sees an attempt that is committed while Fail waits for the row.
func TestFailSeesAnAttemptCommittedWhileItWaits(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	c := acceptLeased(t, s, withdrawal(1, 2))
	tx := begin(t, s)
	a := attempt(1)
	if _, err := tx.Exec(ctx, recordSQL, recordArgs([]recordCall{{lease: c.Lease, attempt: a}})...); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Fail(ctx, c.Lease, refusal.New(refusal.ProgramError, "refused")) }()
	waitForLock(t, s)
	ok(t, tx.Commit(ctx))
	if err := <-failed; !errors.Is(err, txmgr.ErrLeaseLost) {
		t.Errorf("Fail returns %v, want ErrLeaseLost because an attempt can land", err)
	}
}

// begin opens a transaction that ends with the test at the latest.
func begin(t *testing.T, s *Store) pgx.Tx {
	t.Helper()
	tx, err := s.Pool.Begin(t.Context())
	ok(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// waitForLock returns once a statement of this test's schema waits for another.
func waitForLock(t *testing.T, s *Store) {
	t.Helper()
	waitForLocks(t, s, 1)
}

// waitForLocks returns once that many statements of this test's schema wait for others.
func waitForLocks(t *testing.T, s *Store, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		// Other tests have other schemas.
		if one[int](t, s, `SELECT count(DISTINCT w.pid) FROM pg_locks w JOIN pg_locks g ON g.pid = w.pid AND g.granted
			JOIN pg_class c ON c.oid = g.relation AND c.relnamespace = current_schema()::regnamespace WHERE NOT w.granted`) >= n {
			return
		}
	}
	t.Fatalf("%d statements do not wait for locks within 10 s", n)
}

func TestAttemptsRoundTrip(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	c := acceptLeased(t, s, withdrawal(1, 2))
	other := acceptLeased(t, s, withdrawal(3, 4))
	ok(t, s.RecordAttempt(ctx, other.Lease, attempt(9)))
	for n := byte(1); n <= 3; n++ {
		a := attempt(n)
		a.Raw = bytes.Repeat([]byte{n}, 1232)
		ok(t, s.RecordAttempt(ctx, c.Lease, a))
	}
	ok(t, s.MarkAttemptsDead(ctx, c.Lease, []txmgr.DeadAttempt{{Signature: solana.Signature{1}}}))
	ok(t, s.MarkAttemptRejected(ctx, c.Lease, solana.Signature{3}))
	ok(t, s.Release(ctx, c.Lease, 0, "fee_payer_empty"))
	got := claim(t, s, worker(t, s))
	if len(got) != 1 || got[0].ID != c.ID || got[0].Epoch != c.Epoch+1 || got[0].Hold != "fee_payer_empty" {
		t.Fatalf("claimed %+v, want the released submission under a new epoch", got)
	}
	want := func(n byte, refused bool) txmgr.Attempt {
		a := attempt(n)
		a.Raw, a.Rejected = bytes.Repeat([]byte{n}, 1232), refused
		return a
	}
	for _, list := range [][]txmgr.Attempt{got[0].Live, got[0].Dead} {
		for i := range list {
			if list[i].CreatedAt.IsZero() {
				t.Error("an attempt has no time")
			}
			list[i].CreatedAt = time.Time{}
		}
	}
	if diff := cmp.Diff([]txmgr.Attempt{want(2, false), want(3, true)}, got[0].Live); diff != "" {
		t.Errorf("live attempts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]txmgr.Attempt{want(1, false)}, got[0].Dead); diff != "" {
		t.Errorf("dead attempts (-want +got):\n%s", diff)
	}
}

func TestAnAttemptCountsAsSpentUntilItIsDead(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	spent := func(transfer bool) int64 {
		return one[int64](t, s, `SELECT COALESCE(sum(lamports), 0)::bigint FROM spend_buckets WHERE transfer = $1`, transfer)
	}
	w, tr := acceptLeased(t, s, withdrawal(1, 2)), acceptLeased(t, s, transfer(3))
	for i, want := range []int64{1001, 2003, 3006} {
		ok(t, s.RecordAttempt(ctx, w.Lease, attempt(byte(i+1))))
		if got := spent(false); got != want {
			t.Errorf("after %d attempts %d lamports are spent, want %d", i+1, got, want)
		}
	}
	ok(t, s.RecordAttempt(ctx, tr.Lease, attempt(9)))
	if got := spent(true); got != 1009 {
		t.Errorf("transfers spent %d, want 1009", got)
	}
	dead := []txmgr.DeadAttempt{{Signature: solana.Signature{1}}, {Signature: solana.Signature{3}, Paid: 5}}
	for range 2 { // marking dead twice releases once
		ok(t, s.MarkAttemptsDead(ctx, w.Lease, dead))
		if got := spent(false); got != 1002+5 {
			t.Errorf("%d lamports are spent, want 1002 of the live attempt and 5 paid by a dead one", got)
		}
	}
	// An attempt of another submission is not marked dead.
	ok(t, s.MarkAttemptsDead(ctx, w.Lease, []txmgr.DeadAttempt{{Signature: solana.Signature{9}}}))
	if got := spent(true); got != 1009 {
		t.Errorf("transfers spent %d after a wrong lease marked the attempt dead, want 1009", got)
	}
	// A dead transfer attempt changes only the transfers' sum.
	ok(t, s.MarkAttemptsDead(ctx, tr.Lease, []txmgr.DeadAttempt{{Signature: solana.Signature{9}, Paid: 5}}))
	if transfers, others := spent(true), spent(false); transfers != 5 || others != 1002+5 {
		t.Errorf("with a dead transfer attempt, transfers spent %d and others %d; want 5 and %d", transfers, others, 1002+5)
	}
}
