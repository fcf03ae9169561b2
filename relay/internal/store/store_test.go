package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open gives a migrated store in a schema of its own.
func open(t *testing.T) *Store {
	t.Helper()
	pool := pgtest.Pool(t)
	if err := Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	s, err := New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// note is a field element that stands for a nullifier.
func note(n uint64) (b [32]byte) {
	binary.BigEndian.PutUint64(b[24:], n)
	return b
}

// withdrawal spends two notes; 0 stands for none.
func withdrawal(n0, n1 uint64) *submission.Submission {
	call := &shieldpool.Call{
		Proof: make([]byte, shieldpool.ProofLength), Notes: [][]byte{{1, 2}, {3}},
		Inputs:      &shieldpool.PublicInputs{PublicAmount: -100_000_000, Nullifiers: [2][32]byte{note(n0), note(n1)}},
		Destination: shieldpool.Destination{Recipient: solana.PublicKey{1, 2, 3}},
	}
	return &submission.Submission{ID: uuid.New(), Pool: solana.PublicKey{9}, Kind: call.Kind(), State: submission.Pending, Call: call, ProofSign: "plain"}
}

func accept(t *testing.T, s *Store, sub *submission.Submission, key []byte) *submission.Submission {
	t.Helper()
	got, err := s.Accept(t.Context(), sub, key)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func claim(t *testing.T, s *Store, id uuid.UUID) *submission.Claimed {
	t.Helper()
	c, err := s.Claim(t.Context(), id, uuid.New(), time.Minute)
	if err != nil || c == nil {
		t.Fatalf("claim gives %v, %v", c, err)
	}
	return c
}

func attempt(n byte) submission.Attempt {
	return submission.Attempt{
		Signature: solana.Signature{n}, Raw: []byte{n, n}, FeePayer: solana.PublicKey{n}, Blockhash: solana.Hash{n},
		BlockhashSlot: 10, LastValidBlockHeight: 160,
	}
}

func wantCode(t *testing.T, err error, code refusal.Code) *refusal.Refusal {
	t.Helper()
	r, ok := refusal.As(err)
	if !ok || r.Code != code {
		t.Fatalf("error is %v, want a refusal with code %s", err, code)
	}
	return r
}

func TestMigrateTwiceAndAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestAcceptKeepsTheSubmissionWhole(t *testing.T) {
	t.Parallel()
	s := open(t)
	sub := accept(t, s, withdrawal(1, 2), nil)
	got, err := s.Get(t.Context(), sub.ID)
	if err != nil || sub.CreatedAt.IsZero() {
		t.Fatalf("accepted at %s, read back with %v", sub.CreatedAt, err)
	}
	if diff := cmp.Diff(sub, got); diff != "" {
		t.Errorf("what was stored is another (-want +got):\n%s", diff)
	}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := accept(t, s, withdrawal(1, 2), []byte("key hash of thirty-two bytes len"))
	key := []byte("key hash of thirty-two bytes len")

	otherProof := withdrawal(1, 2)
	otherProof.Call.Proof[0], otherProof.Call.Notes = 1, nil
	if got := accept(t, s, otherProof, nil); got.ID != first.ID {
		t.Error("the same inputs with another proof and other notes make another submission")
	}
	otherRecipient := withdrawal(1, 2)
	otherRecipient.Call.Recipient = solana.PublicKey{7}
	for name, sub := range map[string]*submission.Submission{"another recipient": otherRecipient, "one shared note, first": withdrawal(1, 3), "one shared note alone": withdrawal(1, 0)} {
		_, err := s.Accept(t.Context(), sub, nil)
		if r := wantCode(t, err, refusal.NullifierReserved); r.Fields["nullifier_index"] != 0 {
			t.Errorf("%s: the index is %v, want 0", name, r.Fields["nullifier_index"])
		}
	}
	_, err := s.Accept(t.Context(), withdrawal(3, 2), nil)
	if r := wantCode(t, err, refusal.NullifierReserved); r.Fields["nullifier_index"] != 1 {
		t.Errorf("a shared second note has index %v, want 1", r.Fields["nullifier_index"])
	}
	if _, err := s.Accept(t.Context(), withdrawal(3, 0), nil); err != nil {
		t.Errorf("the refused submission left note 3 reserved: %v", err)
	}
	if _, err := s.Accept(t.Context(), withdrawal(4, 0), nil); err != nil {
		t.Errorf("two submissions share the note that means none: %v", err)
	}

	_, err = s.Accept(t.Context(), withdrawal(5, 6), key)
	_ = wantCode(t, err, refusal.IdempotencyKeyReused)
	c := claim(t, s, first.ID)
	if err := s.Fail(t.Context(), c.Lease(), refusal.New(refusal.RootNotFound, "RootNotFound").With("current_root", "aa")); err != nil {
		t.Fatal(err)
	}
	replay, err := s.Repeat(t.Context(), withdrawal(1, 2), key)
	if err != nil || replay == nil || replay.ID != first.ID || replay.State != submission.Failed {
		t.Fatalf("the key does not replay the failure: %+v, %v", replay, err)
	}
	want := &refusal.Refusal{Code: refusal.RootNotFound, Message: "RootNotFound", Fields: map[string]any{"current_root": "aa"}}
	if diff := cmp.Diff(want, replay.Failure); diff != "" {
		t.Errorf("the failure reads otherwise (-want +got):\n%s", diff)
	}
	if again := accept(t, s, withdrawal(1, 2), nil); again.ID == first.ID {
		t.Error("a failed submission keeps its notes")
	}
}

func TestAKeyStandsForTheSubmissionThatItsRequestRepeats(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	first := accept(t, s, withdrawal(1, 2), nil)
	key := make([]byte, 32)
	if got, err := s.Repeat(ctx, withdrawal(1, 2), key); err != nil || got == nil || got.ID != first.ID {
		t.Fatalf("the repeat gives %+v, %v", got, err)
	}
	if err := s.Fail(ctx, claim(t, s, first.ID).Lease(), refusal.New(refusal.RootNotFound, "RootNotFound")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Repeat(ctx, withdrawal(1, 2), key); err != nil || got == nil || got.ID != first.ID {
		t.Errorf("the key does not replay the failure: %+v, %v", got, err)
	}
	_, err := s.Repeat(ctx, withdrawal(3, 4), key)
	_ = wantCode(t, err, refusal.IdempotencyKeyReused)
}

func TestOldKeysAreForgotten(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	for n := range byte(5) {
		accept(t, s, withdrawal(uint64(n)+1, 0), append(make([]byte, 31), n))
	}
	if _, err := s.Pool.Exec(ctx, `UPDATE idempotency_keys SET created_at = now() - $1::interval`, idempotencyWindow+time.Hour); err != nil {
		t.Fatal(err)
	}
	for n := range byte(3) {
		accept(t, s, withdrawal(uint64(n)+100, 0), append(make([]byte, 31), 100+n))
	}
	var rows int
	if err := s.Pool.QueryRow(ctx, "SELECT count(*) FROM idempotency_keys").Scan(&rows); err != nil || rows != 3 {
		t.Errorf("%d keys are kept, want the three new ones (%v)", rows, err)
	}
}

func TestALeaseThatWasGivenBackIsNotRenewed(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	c := claim(t, s, accept(t, s, withdrawal(1, 2), nil).ID)
	if err := s.Release(ctx, c.Lease(), 0, ""); err != nil {
		t.Fatal(err)
	}
	if kept, err := s.Renew(ctx, []submission.Lease{c.Lease()}, time.Minute); err != nil || len(kept) != 0 {
		t.Errorf("renewing keeps %v (%v), want nothing", kept, err)
	}
	claim(t, s, c.ID)
}

func TestOnlyWhatPassesIsUnavailable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want bool
	}{
		"a deadlock passes":                   {&pgconn.PgError{Code: "40P01"}, true},
		"a server that shuts down passes":     {&pgconn.PgError{Code: "57P01"}, true},
		"a demoted primary passes":            {&pgconn.PgError{Code: "25006"}, true},
		"a full disk passes":                  {&pgconn.PgError{Code: "53100"}, true},
		"a statement out of time passes":      {context.DeadlineExceeded, true},
		"a connection that breaks passes":     {io.ErrUnexpectedEOF, true},
		"a violated constraint is our fault":  {&pgconn.PgError{Code: "23514"}, false},
		"a caller who left is not a database": {context.Canceled, false},
		"a damaged row stays so":              {errors.New("stored submission is damaged"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ok := refusal.As(unavailable(fmt.Errorf("read: %w", test.err)))
			if got := ok && r.Code == refusal.DatabaseUnavailable; got != test.want {
				t.Errorf("is database_unavailable: %v, want %v", got, test.want)
			}
		})
	}
}

func TestOneSpendAmongRacingPods(t *testing.T) {
	t.Parallel()
	s := open(t)
	const pods = 16
	ids := make(chan uuid.UUID, pods)
	var wg sync.WaitGroup
	for i := range pods {
		wg.Go(func() {
			// Half of them name the notes in the other order: sorted inserts keep them from deadlock.
			sub := withdrawal(1, 2)
			if i%2 == 1 {
				sub = withdrawal(2, 1)
			}
			got, err := s.Accept(context.Background(), sub, nil)
			if r, ok := refusal.As(err); ok && r.Code == refusal.NullifierReserved {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			ids <- got.ID
		})
	}
	wg.Wait()
	close(ids)
	seen := map[uuid.UUID]bool{}
	for id := range ids {
		seen[id] = true
	}
	var rows int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM submissions").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || rows != 1 {
		t.Errorf("%d submissions were accepted in %d rows, want one", len(seen), rows)
	}
}

func TestALeaseHasOneHolderAndEveryWriteNamesIt(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	sub := accept(t, s, withdrawal(1, 2), nil)
	old, err := s.Claim(ctx, sub.ID, uuid.New(), time.Millisecond)
	if err != nil || old == nil || old.State != submission.Processing {
		t.Fatalf("claim gives %+v, %v", old, err)
	}
	var taken *submission.Claimed
	for deadline := time.Now().Add(10 * time.Second); taken == nil; {
		if taken, err = s.Claim(ctx, sub.ID, uuid.New(), time.Minute); err != nil || time.Now().After(deadline) {
			t.Fatalf("a lapsed lease is not taken over: %v", err)
		}
	}
	if again, err := s.Claim(ctx, sub.ID, uuid.New(), time.Minute); err != nil || again != nil {
		t.Errorf("a held lease is taken: %v, %v", again, err)
	}
	writes := map[string]func(submission.Lease) error{
		"attempt": func(l submission.Lease) error { return s.RecordAttempt(ctx, l, attempt(1)) },
		"bury":    func(l submission.Lease) error { return s.BuryAttempts(ctx, l, []solana.Signature{{1}}) },
		"complete": func(l submission.Lease) error {
			return s.Complete(ctx, l, submission.Outcome{Signature: solana.Signature{1}})
		},
		"finalize": func(l submission.Lease) error {
			return s.Finalize(ctx, l, submission.Outcome{}, submission.SignPin{Sign: "plain"})
		},
		"reopen":  func(l submission.Lease) error { return s.Reopen(ctx, l) },
		"fail":    func(l submission.Lease) error { return s.Fail(ctx, l, refusal.New(refusal.Internal, "x")) },
		"release": func(l submission.Lease) error { return s.Release(ctx, l, 0, "") },
	}
	for name, write := range writes {
		if err := write(old.Lease()); !errors.Is(err, submission.ErrLeaseLost) {
			t.Errorf("%s under a lost lease gives %v, want ErrLeaseLost", name, err)
		}
	}
	if kept, err := s.Renew(ctx, []submission.Lease{old.Lease(), taken.Lease()}, time.Minute); err != nil || !cmp.Equal(kept, []submission.Lease{taken.Lease()}) {
		t.Errorf("renewing keeps %v, want the taker's alone (%v)", kept, err)
	}
}

func TestAttemptsAreWrittenBeforeTheyAreSentAndFailureWaitsForTheirDeath(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	sub := accept(t, s, withdrawal(1, 2), nil)
	c := claim(t, s, sub.ID)
	for n := byte(1); n <= 2; n++ {
		if err := s.RecordAttempt(ctx, c.Lease(), attempt(n)); err != nil {
			t.Fatal(err)
		}
	}
	why := refusal.New(refusal.ProgramError, "refused")
	if err := s.Fail(ctx, c.Lease(), why); !errors.Is(err, submission.ErrLeaseLost) {
		t.Fatalf("a submission fails while its attempts can land: %v", err)
	}
	if err := s.BuryAttempts(ctx, c.Lease(), []solana.Signature{{1}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(ctx, c.Lease(), 0, "fee_payer_empty"); err != nil {
		t.Fatal(err)
	}
	due, err := s.Due(ctx, 10)
	if err != nil || len(due) != 1 || due[0] != sub.ID {
		t.Fatalf("due are %v, want the released one (%v)", due, err)
	}
	c = claim(t, s, sub.ID)
	ignoreTime := cmpopts.IgnoreFields(submission.Attempt{}, "CreatedAt")
	if diff := cmp.Diff([]submission.Attempt{attempt(2)}, c.Live, ignoreTime); diff != "" {
		t.Errorf("live attempts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]submission.Attempt{attempt(1)}, c.Dead, ignoreTime); diff != "" {
		t.Errorf("dead attempts (-want +got):\n%s", diff)
	}
	if err := s.BuryAttempts(ctx, c.Lease(), []solana.Signature{{2}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Fail(ctx, c.Lease(), why); err != nil {
		t.Errorf("a submission without live attempts does not fail: %v", err)
	}
}

func TestCompletedThenFinalizedAndThePin(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	sub := accept(t, s, withdrawal(1, 2), nil)
	c := claim(t, s, sub.ID)
	root := [32]byte{5}
	o := submission.Outcome{Signature: solana.Signature{1}, Slot: 77, LeafIndices: []uint64{4, 5}, Root: &root}
	if err := s.Complete(ctx, c.Lease(), o); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(ctx, sub.ID)
	if err != nil || got.State != submission.Completed || got.Finalized || *got.Signature != o.Signature || got.Slot != 77 || *got.Root != root || !cmp.Equal(got.LeafIndices, o.LeafIndices) {
		t.Errorf("completed row is %+v (%v)", got, err)
	}
	if sign, err := s.PinnedSign(ctx, [32]byte{8}); err != nil || sign != "" {
		t.Errorf("a sign is pinned before finality: %q, %v", sign, err)
	}
	if err := s.Reopen(ctx, c.Lease()); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Get(ctx, sub.ID); err != nil || got.State != submission.Processing || !got.RolledBack || got.Signature != nil {
		t.Errorf("reopened row is %+v (%v)", got, err)
	}
	if err := s.Complete(ctx, c.Lease(), o); err != nil {
		t.Fatal(err)
	}
	if err := s.Finalize(ctx, c.Lease(), submission.Outcome{Signature: o.Signature, Slot: 78}, submission.SignPin{KeyHash: [32]byte{8}, Sign: "negated", Signature: o.Signature}); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Get(ctx, sub.ID); err != nil || !got.Finalized || got.RolledBack || got.Slot != 78 || !cmp.Equal(got.LeafIndices, o.LeafIndices) {
		t.Errorf("finalized row is %+v (%v)", got, err)
	}
	if sign, err := s.PinnedSign(ctx, [32]byte{8}); err != nil || sign != "negated" {
		t.Errorf("pinned sign is %q, want negated (%v)", sign, err)
	}
	if _, err := s.Accept(ctx, withdrawal(1, 9), nil); err == nil {
		t.Error("the notes of a landed submission are free again")
	}
	if due, err := s.Due(ctx, 10); err != nil || len(due) != 0 {
		t.Errorf("a finalized submission is due: %v, %v", due, err)
	}
}

func TestGetUnknownAndBacklog(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	_, err := s.Get(ctx, uuid.New())
	_ = wantCode(t, err, refusal.NotFound)
	// The queue is made but not run, so that its jobs stay to be listed.
	if _, err := NewQueue(s, QueueOptions{Advance: func(context.Context, uuid.UUID) error { return nil }, Workers: 1, StepTimeout: time.Second, SoftStop: time.Second, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	a := accept(t, s, withdrawal(1, 0), nil)
	accept(t, s, withdrawal(2, 0), nil)
	claim(t, s, a.ID)
	b, err := s.Backlog(ctx)
	if err != nil || b.Pending != 1 || b.Processing != 1 || b.OldestAge <= 0 || len(b.QueuedJobs) != 2 {
		t.Errorf("backlog is %+v (%v), want one pending, one processing and two jobs", b, err)
	}
}

func TestTheQueueWakesAndTheListenerTells(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	told := make(chan uuid.UUID, 100)
	go func() { _ = s.Listen(ctx, func(id uuid.UUID) { told <- id }) }()
	q, err := NewQueue(s, QueueOptions{
		Advance: func(ctx context.Context, id uuid.UUID) error {
			c, err := s.Claim(ctx, id, uuid.New(), time.Minute)
			if err != nil || c == nil {
				return err
			}
			return s.Complete(ctx, c.Lease(), submission.Outcome{Signature: solana.Signature{1}})
		},
		Workers: 2, StepTimeout: 5 * time.Second, SoftStop: time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.Run(running) }()
	for n := uint64(1); ; n++ {
		// The listener may not be connected yet; one of the outcomes to come is told of.
		accept(t, s, withdrawal(n, 0), nil)
		select {
		case <-told:
		case <-time.After(200 * time.Millisecond):
			continue
		case <-ctx.Done():
			t.Fatal("no outcome was told of within 30 s")
		}
		break
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the queue ends with %v", err)
	}
}

func TestViewingKeysAreSettledByThePrimaryKey(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	record := func(n byte) viewingkey.Record {
		return viewingkey.Record{Identifier: [32]byte{1}, Sealed: []byte{n}, Fingerprint: [32]byte{n}, KeyID: "0123456789abcdef"}
	}
	var mu sync.Mutex
	inserted := 0
	var wg sync.WaitGroup
	for n := range byte(8) {
		wg.Go(func() {
			existing, err := s.PutViewingKey(context.Background(), record(n))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if existing == nil {
				inserted++
			}
		})
	}
	wg.Wait()
	if inserted != 1 {
		t.Errorf("%d racing registrations were inserted, want one", inserted)
	}
	var all []viewingkey.Record
	err := s.EachViewingKey(ctx, func(r viewingkey.Record) error { all = append(all, r); return nil })
	if err != nil || len(all) != 1 || all[0].KeyID != "0123456789abcdef" {
		t.Errorf("stored are %+v (%v), want one record", all, err)
	}
}

func TestADatabaseThatIsAwayIsARefusalWithRetry(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	ctx := t.Context()
	pool, err := Open(ctx, server.URL("postgres"), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := Migrate(ctx, pool, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	s, err := New(pool)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = s.Accept(ctx, withdrawal(1, 0), nil)
	if r := wantCode(t, err, refusal.DatabaseUnavailable); r.RetryAfter <= 0 {
		t.Error("the refusal does not say when to come back")
	}
	if _, err := Open(ctx, "postgres://user:canary-secret@[", 2); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a bad URL gives %v, want an error without the password", err)
	}
}
