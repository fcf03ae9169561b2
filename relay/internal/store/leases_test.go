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

func TestHeartbeatKeepsLeasesAndReportsALapse(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := uuid.New()
	if !beat(t, s, w, time.Minute) {
		t.Error("the first beat does not report a lapse")
	}
	if beat(t, s, w, time.Minute) {
		t.Error("a beat in time reports a lapse")
	}
	l := stateOf(t, s, submission.Processing, w, 1)
	lapse(t, s, w)
	if !beat(t, s, w, time.Minute) {
		t.Error("a late beat reports no lapse")
	}
	if n, err := s.FreeDeadProcesses(t.Context()); err != nil || n != 0 {
		t.Errorf("reap frees %d (%v) of a worker that beats again, want none", n, err)
	}
	ok(t, s.RecordAttempt(t.Context(), l, attempt(1))) // the lease was not taken meanwhile
	lapse(t, s, w)
	if n, err := s.FreeDeadProcesses(t.Context()); err != nil || n != 1 {
		t.Errorf("reap frees %d (%v), want one", n, err)
	}
	if !beat(t, s, w, time.Minute) {
		t.Error("the beat of a reaped worker reports no lapse")
	}
	if leases, err := s.Leases(t.Context(), w); err != nil || len(leases) != 0 {
		t.Errorf("leases of the reaped worker are %v (%v), want none", leases, err)
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

func TestALeaseOfADeadWorkerIsDueAtOnceUnderANewEpoch(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	dead, living := worker(t, s), worker(t, s)
	open1, landed := stateOf(t, s, submission.Processing, dead, 1), stateOf(t, s, submission.Completed, dead, 2)
	kept := stateOf(t, s, submission.Processing, living, 3)
	lapse(t, s, dead)
	if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 2 {
		t.Fatalf("reap frees %d (%v), want the two of the dead worker", n, err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM workers`); n != 1 {
		t.Errorf("%d workers are known, want the living one", n)
	}
	got := claim(t, s, living)
	if len(got) != 1 || got[0].Lease != (txmgr.Lease{ID: open1.ID, Epoch: open1.Epoch + 2, Owner: living}) {
		t.Errorf("claimed is %+v, want the open one, two epochs on", got)
	}
	watch, err := s.ClaimLanded(ctx, living, 10)
	if err != nil || len(watch) != 1 || watch[0].Lease != (txmgr.Lease{ID: landed.ID, Epoch: landed.Epoch + 2, Owner: living}) {
		t.Errorf("claimed to watch is %+v (%v), want the landed one, two epochs on", watch, err)
	}
	if got := get(t, s, kept.ID).Epoch; got != kept.Epoch {
		t.Errorf("the living worker's row has epoch %d, want %d", got, kept.Epoch)
	}
}

// A claim may commit after its worker was reaped, and a worker's row may be deleted
// by hand: leases without a worker are freed all the same.
func TestLeasesWithoutAWorkerAreFreed(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := worker(t, s)
	for n := range uint64(3) {
		_ = stateOf(t, s, submission.Processing, w, n+1)
	}
	exec(t, s, `DELETE FROM workers`)
	exec(t, s, `UPDATE submissions SET lease_owner = gen_random_uuid()`) // three holders
	if n, err := s.FreeDeadProcesses(t.Context()); err != nil || n != 3 {
		t.Errorf("reap frees %d (%v), want all three", n, err)
	}
}

func TestTheReaperLeavesAWorkerAloneThatBeatsAtThisMoment(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	lapse(t, s, w)
	tx := begin(t, s)
	var lapsed bool
	if err := tx.QueryRow(ctx, heartbeatSQL, w, time.Minute, "").Scan(&lapsed); err != nil || !lapsed {
		t.Fatalf("beat: %v, lapsed %t, want true", err, lapsed)
	}
	if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 0 { // it does not wait
		t.Errorf("reap frees %d (%v) while the worker beats, want none", n, err)
	}
	ok(t, tx.Commit(ctx))
	ok(t, s.RecordAttempt(ctx, l, attempt(1)))
}

func TestHeartbeatWaitsForTheReaperAndReportsTheLapse(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	lapse(t, s, w)
	tx := begin(t, s)
	if _, err := tx.Exec(ctx, deleteDeadWorkersSQL); err != nil {
		t.Fatal(err)
	}
	lapses := make(chan bool, 1)
	go func() {
		lapsed, err := s.Heartbeat(ctx, txmgr.Worker{ID: w}, time.Minute)
		lapses <- lapsed && err == nil
	}()
	waitForLock(t, s)
	if _, err := tx.Exec(ctx, freeLeasesSQL, freeBatch); err != nil {
		t.Fatal(err)
	}
	ok(t, tx.Commit(ctx))
	if !<-lapses {
		t.Error("the beat does not report that the leases expired")
	}
	if err := s.RecordAttempt(ctx, l, attempt(1)); !errors.Is(err, txmgr.ErrLeaseLost) {
		t.Errorf("recording under the reaped lease returns %v, want ErrLeaseLost", err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM workers WHERE until > now()`); n != 1 {
		t.Errorf("%d workers live, want the one that beat", n)
	}
}

// An attempt that is being recorded while its worker is reaped is either there
// for the heir, or was never written.
func TestTheHeirSeesTheAttemptThatWasBeingRecorded(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	a := attempt(1)
	tx := begin(t, s)
	if _, err := tx.Exec(ctx, recordSQL, l.ID, l.Epoch, l.Owner, a.Signature[:], a.Raw, a.FeePayer.Bytes(), a.Blockhash[:], 1, 2, 3, "transact", 0, 0); err != nil {
		t.Fatal(err)
	}
	lapse(t, s, w)
	if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 0 {
		t.Errorf("reap frees %d (%v) while the attempt is being written, want none", n, err)
	}
	ok(t, tx.Commit(ctx))
	if n, err := s.FreeDeadProcesses(ctx); err != nil || n != 1 {
		t.Fatalf("the next reap frees %d (%v), want one", n, err)
	}
	if got := claim(t, s, worker(t, s)); len(got) != 1 || len(got[0].Live) != 1 {
		t.Errorf("the heir gets %+v, want the submission with its attempt", got)
	}
}

func TestManyReapersFreeEachRowOnce(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	const rows = 2*freeBatch + 100
	dead := []uuid.UUID{worker(t, s), worker(t, s), worker(t, s)}
	bulk(t, s, rows, "processing")
	for i, w := range dead {
		exec(t, s, `UPDATE submissions SET lease_owner = $1 WHERE job_id % 3 = $2`, w, i)
		lapse(t, s, w)
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
	n, err := s.FreeDeadProcesses(ctx) // what was locked by one while another looked
	ok(t, err)
	if freed += n; freed != rows {
		t.Errorf("%d rows were freed, want %d", freed, rows)
	}
	if n := one[int](t, s, `SELECT count(*) FROM submissions WHERE epoch <> 2 OR lease_owner IS NOT NULL`); n != 0 {
		t.Errorf("%d rows were freed other than once", n)
	}
}

// bulk makes rows without the relay, without leases: one statement for any number.
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

func TestRetiringReleasesAllLeases(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w, other := worker(t, s), worker(t, s)
	_ = stateOf(t, s, submission.Processing, w, 1)
	_ = stateOf(t, s, submission.Completed, w, 2)
	_ = stateOf(t, s, submission.Processing, other, 3)
	if n, err := s.ReleaseAll(ctx, w); err != nil || n != 2 {
		t.Fatalf("retire frees %d (%v), want two", n, err)
	}
	if got, err := s.ClaimLanded(ctx, other, 10); err != nil || len(got) != 1 || len(claim(t, s, other)) != 1 {
		t.Errorf("another worker finds %v (%v), want the landed and the open one", got, err)
	}
	if got := claim(t, s, w); len(got) != 0 || one[int](t, s, `SELECT count(*) FROM workers`) != 1 {
		t.Errorf("the retired worker is still known, or claims %v", ids(got))
	}
}

func TestAClaimTakesTheMostUrgentFirstAndThenTheOldest(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	var want [6]uuid.UUID
	for _, p := range []struct {
		seq   uint64
		place int
	}{{7, 3}, {5, 1}, {9, 5}, {5, 2}, {7, 4}, {0, 0}} { // in the order of their coming
		sub := withdrawal(uint64(p.place)+1, 0)
		sub.RootSeq = p.seq
		want[p.place] = accept(t, s, sub, nil).ID
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
		t.Errorf("claimed in the order (-want +got):\n%s", diff)
	}
	dead := uuid.New()
	exec(t, s, `UPDATE submissions SET due_at = now(), lease_owner = NULL`)
	if got := claim(t, s, dead); len(got) != 0 {
		t.Errorf("a worker that is not alive claims %v", ids(got))
	}
	lapse(t, s, w)
	if got := claim(t, s, w); len(got) != 0 {
		t.Errorf("a worker whose time is over claims %v", ids(got))
	}
}

func TestAReleasedSubmissionIsDueAfterItsDelay(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	l := stateOf(t, s, submission.Processing, w, 1)
	ok(t, s.Release(ctx, l, time.Hour, ""))
	if got := claim(t, s, w); len(got) != 0 {
		t.Errorf("claimed are %v before the delay is over", ids(got))
	}
	delay := one[time.Duration](t, s, `SELECT due_at - now() FROM submissions`)
	if delay < 59*time.Minute || delay > time.Hour {
		t.Errorf("it is due in %s, want an hour", delay)
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
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if len(times) != rows {
		t.Errorf("%d rows were claimed, want %d", len(times), rows)
	}
}
