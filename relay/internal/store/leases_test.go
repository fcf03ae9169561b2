package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

func ids(claimed []*txmgr.Job) []uuid.UUID {
	out := make([]uuid.UUID, len(claimed))
	for i, c := range claimed {
		out[i] = c.ID
	}
	return out
}

func TestHeartbeatKeepsLeasesAndReportsExpiry(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := uuid.New()
	if !heartbeat(t, s, w, time.Minute) {
		t.Error("the first heartbeat reports no expiry")
	}
	if heartbeat(t, s, w, time.Minute) {
		t.Error("a heartbeat in time reports an expiry")
	}
	l := stateOf(t, s, submission.Processing, w, 1)
	expireWorker(t, s, w)
	if !heartbeat(t, s, w, time.Minute) {
		t.Error("a late heartbeat reports no expiry")
	}
	if n, err := s.FreeDeadProcesses(t.Context()); err != nil || n != 0 {
		t.Errorf("FreeDeadProcesses frees %d leases (%v) of a worker with a new heartbeat, want 0", n, err)
	}
	ok(t, s.RecordAttempt(t.Context(), l, attempt(1))) // the worker still has the lease
	expireWorker(t, s, w)
	if n, err := s.FreeDeadProcesses(t.Context()); err != nil || n != 1 {
		t.Errorf("FreeDeadProcesses frees %d leases (%v), want 1", n, err)
	}
	if !heartbeat(t, s, w, time.Minute) {
		t.Error("the heartbeat of a deleted worker reports no expiry")
	}
	if leases, err := s.Leases(t.Context(), w); err != nil || len(leases) != 0 {
		t.Errorf("leases of the deleted worker are %v (%v), want none", leases, err)
	}
}

func TestLeasesListsTheLeasesOfAWorker(t *testing.T) {
	t.Parallel()
	s := open(t)
	w, other := worker(t, s), worker(t, s)
	want := []txmgr.Lease{stateOf(t, s, submission.Processing, w, 1), stateOf(t, s, submission.Completed, w, 2)}
	_ = stateOf(t, s, submission.Processing, other, 3)
	_ = stateOf(t, s, submission.Failed, w, 4)
	got, err := s.Leases(t.Context(), w)
	byID := func(a, b txmgr.Lease) int { return slices.Compare(a.ID[:], b.ID[:]) }
	slices.SortFunc(want, byID)
	slices.SortFunc(got, byID)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("leases (%v) (-want +got):\n%s", err, diff)
	}
}

func TestSubmissionOfADeadWorkerIsDueAtOnceUnderANewEpoch(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	dead, live := worker(t, s), worker(t, s)
	unlanded, landed := stateOf(t, s, submission.Processing, dead, 1), stateOf(t, s, submission.Completed, dead, 2)
	kept := stateOf(t, s, submission.Processing, live, 3)
	expireWorker(t, s, dead)
	if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 2 {
		t.Fatalf("FreeDeadProcesses frees %d leases (%v), want the 2 of the dead worker", n, err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM workers`); n != 1 {
		t.Errorf("%d workers are stored, want only the live one", n)
	}
	got := claim(t, s, live)
	if len(got) != 1 || got[0].Lease != (txmgr.Lease{ID: unlanded.ID, Epoch: unlanded.Epoch + 2, Owner: live}) {
		t.Errorf("Claim returns %+v, want the unlanded submission, two epochs later", got)
	}
	claimedLanded, err := s.ClaimLanded(ctx, live, 10)
	if err != nil || len(claimedLanded) != 1 || claimedLanded[0].Lease != (txmgr.Lease{ID: landed.ID, Epoch: landed.Epoch + 2, Owner: live}) {
		t.Errorf("ClaimLanded returns %+v (%v), want the landed submission, two epochs later", claimedLanded, err)
	}
	if got := get(t, s, kept.ID).Epoch; got != kept.Epoch {
		t.Errorf("the live worker's submission has epoch %d, want %d", got, kept.Epoch)
	}
}

// A claim may commit after its worker's row was deleted: leases without a worker are
// freed all the same.
func TestLeasesWithoutAWorkerAreFreed(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := worker(t, s)
	for n := range uint64(3) {
		_ = stateOf(t, s, submission.Processing, w, n+1)
	}
	exec(t, s, `DELETE FROM workers`)
	exec(t, s, `UPDATE submissions SET lease_owner = gen_random_uuid()`) // three owners
	if n, err := s.FreeDeadProcesses(t.Context()); err != nil || n != 3 {
		t.Errorf("FreeDeadProcesses frees %d leases (%v), want 3", n, err)
	}
}

func TestFreeDeadProcessesSkipsAWorkerDuringItsHeartbeat(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	expireWorker(t, s, w)
	tx := begin(t, s)
	var lapsed bool
	if err := tx.QueryRow(ctx, heartbeatSQL, w, time.Minute, "").Scan(&lapsed, nil); err != nil || !lapsed {
		t.Fatalf("heartbeat: error %v, lapsed %t; want lapsed", err, lapsed)
	}
	if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 0 { // it does not wait for the heartbeat
		t.Errorf("FreeDeadProcesses frees %d leases (%v) during the heartbeat, want 0", n, err)
	}
	ok(t, tx.Commit(ctx))
	ok(t, s.RecordAttempt(ctx, l, attempt(1)))
}

func TestHeartbeatWaitsForFreeDeadProcessesAndReportsExpiry(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	expireWorker(t, s, w)
	tx := begin(t, s)
	if _, err := tx.Exec(ctx, deleteDeadWorkersSQL); err != nil {
		t.Fatal(err)
	}
	reportsExpiry := make(chan bool, 1)
	go func() {
		lapsed, err := s.Heartbeat(ctx, txmgr.Worker{ID: w}, time.Minute)
		reportsExpiry <- lapsed && err == nil
	}()
	waitForLock(t, s)
	if _, err := tx.Exec(ctx, freeLeasesSQL, freeBatch); err != nil {
		t.Fatal(err)
	}
	ok(t, tx.Commit(ctx))
	if !<-reportsExpiry {
		t.Error("the heartbeat does not report that the leases expired")
	}
	if err := s.RecordAttempt(ctx, l, attempt(1)); !errors.Is(err, txmgr.ErrLeaseLost) {
		t.Errorf("recording with the freed lease returns %v, want ErrLeaseLost", err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM workers WHERE until > now()`); n != 1 {
		t.Errorf("%d workers are live, want the 1 with the heartbeat", n)
	}
}

// An attempt that is being recorded while the leases of its worker are freed is either
// visible to the new owner or not written at all.
func TestNewOwnerSeesAnAttemptRecordedDuringTheTakeover(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	a := attempt(1)
	tx := begin(t, s)
	if _, err := tx.Exec(ctx, recordSQL, recordArgs([]recordCall{{lease: l, attempt: a}})...); err != nil {
		t.Fatal(err)
	}
	expireWorker(t, s, w)
	if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 0 {
		t.Errorf("FreeDeadProcesses frees %d leases (%v) while the attempt is being written, want 0", n, err)
	}
	ok(t, tx.Commit(ctx))
	if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 1 {
		t.Fatalf("the next FreeDeadProcesses frees %d leases (%v), want 1", n, err)
	}
	if got := claim(t, s, worker(t, s)); len(got) != 1 || len(got[0].Live) != 1 {
		t.Errorf("the new owner claims %+v, want the submission with its attempt", got)
	}
}

func TestConcurrentFreeDeadProcessesFreeEachRowOnce(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	const rows = 2*freeBatch + 100
	dead := []uuid.UUID{worker(t, s), worker(t, s), worker(t, s)}
	bulk(t, s, rows, "processing")
	for i, w := range dead {
		exec(t, s, `UPDATE submissions SET lease_owner = $1 WHERE job_id % 3 = $2`, w, i)
		expireWorker(t, s, w)
	}
	var mu sync.Mutex
	freed := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			n, err := s.FreeDeadProcesses(ctx)
			mu.Lock()
			defer mu.Unlock()
			freed += n
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n, err := s.FreeDeadProcesses(ctx) // frees rows that the others skipped because they were locked
	ok(t, err)
	if freed += n; freed != rows {
		t.Errorf("%d rows were freed, want %d", freed, rows)
	}
	if n := one[int](t, s, `SELECT count(*) FROM submissions WHERE epoch <> 2 OR lease_owner IS NOT NULL`); n != 0 {
		t.Errorf("%d rows were not freed exactly once", n)
	}
}

// bulk inserts any number of submissions, without leases, by one statement.
func bulk(t testing.TB, s *Store, rows int, state string) {
	t.Helper()
	exec(t, s, `WITH made AS (
		INSERT INTO submissions (id, pool, kind, state, content_hash, root_seq, due_at, epoch, signature, finalized, error_code, created_at, completed_at)
		SELECT gen_random_uuid(), $3, 'withdrawal', $2, sha256(n::text::bytea), n % 1000,
			CASE WHEN $2 IN ('pending', 'processing') THEN now() END, 1,
			CASE WHEN $2 = 'completed' THEN sha512(n::text::bytea) END, $2 = 'completed', CASE WHEN $2 = 'failed' THEN 'root_not_found' END,
			now() - interval '30 days' + n * interval '1 second', CASE WHEN $2 IN ('completed', 'failed') THEN now() - interval '30 days' + n * interval '1 second' END
		FROM generate_series(1, $1) AS n RETURNING id, content_hash)
		INSERT INTO requests (submission_id, proof, proof_sign, public_inputs, recipient, notes, spends)
		SELECT id, $4, 'plain', $5, $6, '{}', ARRAY[content_hash] FROM made`,
		rows, state, testPool.Bytes(), make([]byte, 256), withdrawal(1, 2).Call.Inputs.Bytes(), make([]byte, 32))
}

func TestReleaseAllReleasesTheLeasesOfOneWorker(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w, other := worker(t, s), worker(t, s)
	_ = stateOf(t, s, submission.Processing, w, 1)
	_ = stateOf(t, s, submission.Completed, w, 2)
	_ = stateOf(t, s, submission.Processing, other, 3)
	if n, err := s.ReleaseAll(ctx, w); err != nil || n != 2 {
		t.Fatalf("ReleaseAll frees %d leases (%v), want 2", n, err)
	}
	if got, err := s.ClaimLanded(ctx, other, 10); err != nil || len(got) != 1 || len(claim(t, s, other)) != 1 {
		t.Errorf("ClaimLanded of another worker returns %v (%v), want the landed submission; Claim has to return the other one", got, err)
	}
	if got := claim(t, s, w); len(got) != 0 || one[int](t, s, `SELECT count(*) FROM workers`) != 1 {
		t.Errorf("the retired worker claims %v, or is still stored", ids(got))
	}
}

func TestClaimReturnsTheMostUrgentFirstThenTheOldest(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	var want [6]uuid.UUID
	for _, p := range []struct {
		rootSeq  uint64
		position int // in the order of claims
	}{{7, 3}, {5, 1}, {9, 5}, {5, 2}, {7, 4}, {0, 0}} { // in the order of acceptance
		sub := withdrawal(uint64(p.position)+1, 0)
		sub.RootSeq = p.rootSeq
		want[p.position] = accept(t, s, sub, nil).ID
	}
	later := accept(t, s, withdrawal(50, 0), nil)
	exec(t, s, `UPDATE submissions SET due_at = now() + interval '1 hour' WHERE id = $1`, later.ID)
	w := worker(t, s)
	var got []uuid.UUID
	for range 4 {
		claimed, err := s.Claim(ctx, w, 2)
		ok(t, err)
		got = append(got, ids(claimed)...)
	}
	if diff := cmp.Diff(want[:], got); diff != "" {
		t.Errorf("order of claims (-want +got):\n%s", diff)
	}
	unknown := uuid.New()
	exec(t, s, `UPDATE submissions SET due_at = now(), lease_owner = NULL`)
	if got := claim(t, s, unknown); len(got) != 0 {
		t.Errorf("a worker without a heartbeat claims %v", ids(got))
	}
	expireWorker(t, s, w)
	if got := claim(t, s, w); len(got) != 0 {
		t.Errorf("an expired worker claims %v", ids(got))
	}
}

func TestAReleasedSubmissionIsDueAfterItsDelay(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	ok(t, s.Release(ctx, l, time.Hour, ""))
	if got := claim(t, s, w); len(got) != 0 {
		t.Errorf("claimed %v before the delay is over, want none", ids(got))
	}
	delay := one[time.Duration](t, s, `SELECT due_at - now() FROM submissions`)
	if delay < 59*time.Minute || delay > time.Hour {
		t.Errorf("the submission is due in %s, want an hour", delay)
	}
	steps := []struct {
		hold  string
		tries int
	}{{"", 2}, {"fee_payer_empty", 2}, {"fee_payer_empty", 2}, {"", 3}}
	for i, step := range steps {
		exec(t, s, `UPDATE submissions SET due_at = now()`)
		c := claim(t, s, w)[0]
		ok(t, s.Release(ctx, c.Lease, time.Hour, step.hold))
		if got := get(t, s, c.ID); got.Tries != step.tries || got.Hold != step.hold || got.State != submission.Processing {
			t.Errorf("step %d: %d tries, hold %q, %s; want %d, %q, processing", i, got.Tries, got.Hold, got.State, step.tries, step.hold)
		}
	}
	exec(t, s, `UPDATE submissions SET due_at = now(), hold_reason = 'fee_payer_empty'`)
	c := claim(t, s, w)[0]
	ok(t, s.RecordAttempt(ctx, c.Lease, attempt(1)))
	if got := get(t, s, c.ID); got.Tries != 0 || got.Hold != "" {
		t.Errorf("after an attempt: %d tries, hold %q; want none", got.Tries, got.Hold)
	}
}

func TestConcurrentClaimsNeverShareARow(t *testing.T) {
	t.Parallel()
	s := open(t)
	const rows, claimers = 600, 8
	bulk(t, s, rows, "pending")
	var mu sync.Mutex
	times := map[uuid.UUID]int{}
	var wg sync.WaitGroup
	for range claimers {
		w := worker(t, s)
		wg.Go(func() {
			for {
				got, err := s.Claim(context.Background(), w, 7)
				if err != nil {
					t.Error(err)
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, c := range got {
					times[c.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range times {
		if n != 1 {
			t.Errorf("%s was claimed %d times, want once", id, n)
		}
	}
	if len(times) != rows {
		t.Errorf("%d rows were claimed, want %d", len(times), rows)
	}
}
