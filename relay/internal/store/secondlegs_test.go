package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
)

// secondLegOf creates a second leg in the state, by the moves that lead there,
// leased to the worker if the state has a lease.
func secondLegOf(t *testing.T, s *Store, state submission.State, w uuid.UUID, n uint64) txmgr.Lease {
	t.Helper()
	if state == submission.Pending {
		_, id := funded(t, s, w, n)
		return txmgr.Lease{ID: id}
	}
	_, c := bothLegs(t, s, w, n)
	switch state {
	case submission.Completed:
		complete(t, s, secondLegLanding(c.Lease, byte(n), submission.PhaseExecuted))
	case submission.Failed:
		ok(t, s.Fail(t.Context(), c.Lease, refusal.New(refusal.ProgramError, "refused")))
	case submission.Pending, submission.Processing:
	}
	return c.Lease
}

func TestSecondLegMovesAreWrittenExactlyWhenTheStateAllowsThem(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := uint64(100)
	for _, state := range States() {
		for _, move := range Moves() {
			s := open(t) // a new store, so that claims find only this second leg
			n++
			w := worker(t, s)
			all := moves(ctx, s)
			all[MoveComplete] = func(l txmgr.Lease, _ uuid.UUID) error {
				return oneLease(s.Complete(ctx, []submission.Landing{secondLegLanding(l, 1, submission.PhaseRefunded)}))
			}
			l := secondLegOf(t, s, state, w, n)
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
}

func TestNothingOfASwapIsWrittenUnderALostLease(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, state := range []submission.State{submission.Processing, submission.Completed} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			s := open(t)
			w := worker(t, s)
			_, c := bothLegs(t, s, w, 1)
			l := c.Lease
			ok(t, s.RecordAttempt(ctx, l, attemptFor(1, txmgr.PurposeExecute)))
			if state == submission.Completed {
				complete(t, s, secondLegLanding(l, 1, submission.PhaseExecuted))
			}
			ok(t, s.Release(ctx, l, 0, ""))
			claimByAnother(t, s, l.ID)
			before := dump(t, s, l.ID)
			end := secondLegLanding(l, 1, submission.PhaseRefunded)
			end.Returned = 5
			for what, write := range map[string]func() error{
				"update": func() error { return s.UpdateSwap(ctx, l, submission.PhaseFunded, 9) },
				"record": func() error { return s.RecordAttempt(ctx, l, attemptFor(2, txmgr.PurposeExecute)) },
				"mark dead": func() error {
					return s.MarkAttemptsDead(ctx, l, []txmgr.DeadAttempt{{Signature: solana.Signature{1}}})
				},
				"complete": func() error {
					return oneLease(s.Complete(ctx, []submission.Landing{end}))
				},
				"finalize": func() error {
					return oneLease(s.Finalize(ctx, []submission.Landing{end}, nil))
				},
				"reopen": func() error { return s.Reopen(ctx, l) },
				"fail":   func() error { return s.Fail(ctx, l, refusal.New(refusal.ProgramError, "refused")) },
			} {
				if err := write(); !errors.Is(err, txmgr.ErrLeaseLost) {
					t.Errorf("%s under a lost lease returns %v, want ErrLeaseLost", what, err)
				}
			}
			if diff := cmp.Diff(before, dump(t, s, l.ID)); diff != "" {
				t.Errorf("writes under a lost lease changed rows (-before +after):\n%s", diff)
			}
		})
	}
}

func TestClaimsOfFirstAndSecondLegsAreSeparate(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	var secondLegs []uuid.UUID
	for n := uint64(1); n <= 4; n++ {
		_, id := funded(t, s, w, n)
		secondLegs = append(secondLegs, id)
	}
	firstLegs := []uuid.UUID{accept(t, s, withdrawal(11, 0), nil).ID, accept(t, s, swap(12, 0), nil).ID, accept(t, s, transfer(13), nil).ID}
	// The longest due is claimed first, not the first created.
	for i, dueOrder := range []int{3, 1, 4, 2} {
		exec(t, s, `UPDATE submissions SET due_at = now() - $2 * interval '1 minute' WHERE id = $1`, secondLegs[i], 10-dueOrder)
	}
	if got, err := s.ClaimSwapExecutions(ctx, w, 2); err != nil || !slices.Equal(ids(got), []uuid.UUID{secondLegs[1], secondLegs[3]}) {
		t.Errorf("claimed %v (%v), want the 2 second legs that have been due longest", ids(got), err)
	}
	if got, err := s.Probe(ctx, w, 100); err != nil || len(got) != 1 || got[0].ID != firstLegs[0] {
		t.Errorf("Probe claimed %v (%v), want the oldest first leg", ids(got), err)
	}
	if got := claim(t, s, w); !slices.Equal(ids(got), firstLegs[1:]) {
		t.Errorf("claimed %v, want the other first legs %v", ids(got), firstLegs[1:])
	}
	if got := claimSecondLegs(t, s, w); !slices.Equal(ids(got), []uuid.UUID{secondLegs[0], secondLegs[2]}) {
		t.Errorf("claimed %v, want the other second legs", ids(got))
	}
	// Probe claims started first legs, but no started second leg.
	exec(t, s, `UPDATE submissions SET lease_owner = NULL, due_at = now() WHERE state = 'processing'`)
	if got, err := s.Probe(ctx, w, 100); err != nil || len(got) != len(firstLegs) {
		t.Errorf("Probe claimed %v (%v), want the started submissions without second legs", ids(got), err)
	}
	unknown := uuid.New()
	if got := claimSecondLegs(t, s, unknown); len(got) != 0 {
		t.Errorf("a worker without a heartbeat claims %v", ids(got))
	}
}

func TestClaimLandedReturnsBothLegs(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	first, c := bothLegs(t, s, w, 1)
	complete(t, s, secondLegLanding(c.Lease, 8, submission.PhaseRefunded))
	if n, err := s.ReleaseAll(ctx, w); err != nil || n != 2 {
		t.Fatalf("ReleaseAll frees %d leases (%v), want the leases of both legs", n, err)
	}
	got, err := s.ClaimLanded(ctx, worker(t, s), 10)
	ok(t, err)
	if len(got) != 2 || got[0].ID != first.ID || got[1].ID != c.ID || submission.FromJob(got[1]).Swap.Phase != submission.PhaseRefunded || submission.FromJob(got[0]).Swap == nil || *submission.FromJob(got[1]).Parent != first.ID {
		t.Errorf("ClaimLanded returns %v, want both legs with their swap", ids(got))
	}
}

// A later release may add kinds that this release does not know.
func TestUnknownKindsAreNotClaimed(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	exec(t, s, `ALTER TABLE submissions DROP CONSTRAINT submissions_kind_check`)
	unknown := accept(t, s, withdrawal(1, 0), nil)
	landed := acceptLeased(t, s, withdrawal(2, 0))
	complete(t, s, landing(landed.Lease, 2))
	ok(t, s.Release(ctx, landed.Lease, 0, ""))
	known := accept(t, s, withdrawal(3, 0), nil)
	exec(t, s, `UPDATE submissions SET kind = 'loan' WHERE id IN ($1, $2)`, unknown.ID, landed.ID)
	before := dump(t, s, unknown.ID)
	var got []uuid.UUID
	for _, c := range []func(context.Context, uuid.UUID, int) ([]*txmgr.Job, error){s.Probe, s.Claim, s.ClaimSwapExecutions, s.ClaimLanded} {
		claimed, err := c(ctx, w, 10)
		ok(t, err)
		got = append(got, ids(claimed)...)
	}
	if !slices.Equal(got, []uuid.UUID{known.ID}) {
		t.Errorf("claimed %v, want only the submission of a known kind", got)
	}
	if diff := cmp.Diff(before, dump(t, s, unknown.ID)); diff != "" {
		t.Errorf("the submission of an unknown kind changed (-before +after):\n%s", diff)
	}
}

func TestUnreadableRowsAreDeferredAndBlockNoOthers(t *testing.T) {
	t.Parallel()
	damage := map[string]string{
		"invalid public inputs":         `UPDATE requests SET public_inputs = decode(repeat('ff', 264), 'hex') WHERE submission_id = $1`,
		"a missing request":             `DELETE FROM requests WHERE submission_id = $1`,
		"a second leg without its swap": `DELETE FROM swaps WHERE id = (SELECT id FROM submissions WHERE parent = $1)`,
	}
	for name, sql := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t), t.Context()
			w := worker(t, s)
			bad, badLeg := funded(t, s, w, 1)
			_, goodLeg := funded(t, s, w, 2)
			ok(t, s.Reopen(ctx, bad)) // so that both legs can be claimed
			ok(t, s.RecordAttempt(ctx, bad, attempt(60)))
			ok(t, s.Release(ctx, bad, 0, ""))
			exec(t, s, sql, bad.ID)
			good := accept(t, s, withdrawal(3, 0), nil)
			damaged := 0
			for what, c := range map[string]struct {
				claim     func(context.Context, uuid.UUID, int) ([]*txmgr.Job, error)
				good, bad uuid.UUID
			}{
				"first leg":  {s.Claim, good.ID, bad.ID},
				"second leg": {s.ClaimSwapExecutions, goodLeg, badLeg},
			} {
				got, err := c.claim(ctx, w, 10)
				ok(t, err)
				if !slices.Contains(ids(got), c.good) {
					t.Errorf("%s: claimed %v, want the readable one among them", what, ids(got))
				}
				if slices.Contains(ids(got), c.bad) {
					continue
				}
				damaged++
				row := one[string](t, s, `SELECT concat_ws(' ', hold_reason, lease_owner IS NULL, due_at > now() + interval '9 minutes') FROM submissions WHERE id = $1`, c.bad)
				if row != "unreadable t t" {
					t.Errorf("hold reason, missing lease and delay of ten minutes of the damaged %s are %q, want unreadable t t", what, row)
				}
			}
			if damaged == 0 {
				t.Error("both legs were claimed, want at least one unreadable")
			}
			if q, err := s.QueueByRoot(ctx, testPool, 0); err != nil || queued(q) != 3-damaged {
				t.Errorf("the queue is %+v (%v), want the %d readable ones", q, err, 3-damaged)
			}
			if b, err := s.Backlog(ctx); err != nil || b.Held[holdUnreadable] != int64(damaged) {
				t.Errorf("held: %v (%v), want %d unreadable", b.Held, err, damaged)
			}
		})
	}
}

func TestAFailedFirstLegFailsItsSecondLeg(t *testing.T) {
	t.Parallel()
	why := refusal.New(refusal.RootNotFound, "stale").With("current_root", "00")
	tests := map[string]struct {
		prepare    func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease
		rolledBack bool
	}{
		"waiting": {func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return secondLegOf(t, s, submission.Pending, w, 1)
		}, false},
		"leased to another worker": {func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return secondLegOf(t, s, submission.Processing, w, 1)
		}, false},
		"with an execution": {func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			l := secondLegOf(t, s, submission.Processing, w, 1)
			ok(t, s.RecordAttempt(t.Context(), l, attemptFor(1, txmgr.PurposeExecute)))
			return l
		}, false},
		"landed on the abandoned fork": {func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return secondLegOf(t, s, submission.Completed, w, 1)
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t), t.Context()
			otherWorker := worker(t, s)
			leg := test.prepare(t, s, otherWorker)
			parent := *get(t, s, leg.ID).Parent
			first := get(t, s, parent).Lease()
			ok(t, s.Reopen(ctx, first))
			ok(t, s.Fail(ctx, first, why))
			got := get(t, s, leg.ID)
			if got.State != submission.Failed || got.Failure.Code != why.Code || got.Failure.Fields["current_root"] != "00" || got.Epoch != leg.Epoch+1 ||
				got.RolledBack != test.rolledBack || got.Signature != nil || got.CompletedAt == nil {
				t.Errorf("the second leg is %+v, want it failed like the first, under a new epoch", got)
			}
			if err := s.UpdateSwap(ctx, leg, submission.PhaseQuoted, 1); !errors.Is(err, txmgr.ErrLeaseLost) {
				t.Errorf("UpdateSwap by its former owner returns %v, want ErrLeaseLost", err)
			}
			if err := s.RecordAttempt(ctx, leg, attemptFor(7, txmgr.PurposeExecute)); !errors.Is(err, txmgr.ErrLeaseLost) {
				t.Errorf("RecordAttempt by its former owner returns %v, want ErrLeaseLost", err)
			}
			if leases, err := s.Leases(ctx, otherWorker); err != nil || len(leases) != 0 {
				t.Errorf("leases are %v (%v), want none", leases, err)
			}
			if n := one[int](t, s, `SELECT (SELECT count(*) FROM reservations) + (SELECT count(*) FROM swaps WHERE NOT ended)`); n != 0 {
				t.Errorf("%d reservations and open swaps are left, want 0", n)
			}
			// The notes can be spent by another submission.
			accept(t, s, swap(1, 0), nil)
		})
	}
}

func TestFirstLegWithAFinalSecondLegCannotFail(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	first, c := bothLegs(t, s, w, 1)
	complete(t, s, secondLegLanding(c.Lease, 8, submission.PhaseExecuted))
	finalize(t, s, secondLegLanding(c.Lease, 8, submission.PhaseExecuted))
	ok(t, s.Reopen(ctx, first))
	if err := s.Fail(ctx, first, refusal.New(refusal.RootNotFound, "stale")); !errors.Is(err, txmgr.ErrLeaseLost) {
		t.Errorf("failing the first leg returns %v, want ErrLeaseLost", err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM reservations`); n != 1 {
		t.Errorf("%d nullifiers are reserved, want the 1 that is spent", n)
	}
}

func TestOutcomesOfSecondLegsNotifyTheClients(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done, due := make(chan uuid.UUID, 100), make(chan struct{}, 100)
	go func() {
		_ = s.Listen(ctx, submission.Notifications{Done: func(id uuid.UUID) { done <- id }, Due: func() { due <- struct{}{} }})
	}()
	for connected := false; !connected; { // perhaps the listener is not connected yet
		ok(t, s.NotifyDue(ctx))
		select {
		case <-due:
			connected = true
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("no notification within 30 s")
		}
	}
	w := worker(t, s)
	a, x := bothLegs(t, s, w, 1)
	b, y := bothLegs(t, s, w, 2)
	complete(t, s, secondLegLanding(x.Lease, 8, submission.PhaseExecuted))
	ok(t, s.Fail(ctx, y.Lease, refusal.New(refusal.ProgramError, "refused")))
	notified := map[uuid.UUID]int{}
	for range 6 {
		select {
		case id := <-done:
			notified[id]++
		case <-ctx.Done():
			t.Fatalf("notified of %v within 30 s, want 6 notifications", notified)
		}
	}
	// Waiters for a first leg are notified of its landing and of the second leg's outcome.
	if diff := cmp.Diff(map[uuid.UUID]int{a.ID: 2, b.ID: 2, x.ID: 1, y.ID: 1}, notified); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
}

func TestConcurrentClaimsNeverReturnTheSameSecondLeg(t *testing.T) {
	t.Parallel()
	s := open(t)
	const rows, claimers = 400, 8
	insertWaitingSwaps(t, s, rows)
	exec(t, s, `UPDATE submissions SET due_at = now() WHERE kind = 'swap_execution'`)
	var mu sync.Mutex
	times := map[uuid.UUID]int{}
	var wg sync.WaitGroup
	for range claimers {
		w := worker(t, s)
		wg.Go(func() {
			for {
				got, err := s.ClaimSwapExecutions(context.Background(), w, 7)
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

// insertWaitingSwaps inserts swaps whose second legs wait for a price.
func insertWaitingSwaps(t testing.TB, s *Store, rows int) {
	t.Helper()
	exec(t, s, `WITH made AS (
		INSERT INTO submissions (id, pool, kind, state, content_hash, root_seq, due_at, epoch, signature, created_at, completed_at)
		SELECT gen_random_uuid(), $2, 'swap', 'completed', sha256(n::text::bytea), n % 1000, now() + interval '1 hour', 1, sha512(n::text::bytea), now(), now()
		FROM generate_series(1, $1) AS n RETURNING id, pool, content_hash
	), requested AS (
		INSERT INTO requests (submission_id, proof, proof_sign, public_inputs, recipient, notes, spends, swap_terms)
		SELECT id, $3, 'plain', $4, $5, '{}', ARRAY[content_hash], $6 FROM made
	), legs AS (
		INSERT INTO submissions (id, parent, pool, kind, state, content_hash, root_seq, due_at, epoch, hold_reason)
		SELECT gen_random_uuid(), id, pool, 'swap_execution', 'processing', content_hash, 9223372036854775807, now() + random() * interval '1 minute' + interval '1 minute', 3, 'swap_price'
		FROM made RETURNING id
	)
	INSERT INTO swaps (id, phase, timeout_slot) SELECT id, 'funded', 1000 + floor(random() * 1000) FROM legs`,
		rows, testPool.Bytes(), make([]byte, 256), swap(1, 2).Call.Inputs.Bytes(), make([]byte, 32), make([]byte, 72))
}

// Many workers concurrently claim, complete, finalize, reopen, fail, update and release
// both legs of a few swaps. Nothing deadlocks, and no swap ends up with two second legs,
// or with a second leg that has not failed although the first has.
func TestConcurrentWritesOfBothLegsNeverDeadlock(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const swaps, workers, rounds = 12, 8, 120
	for n := range uint64(swaps) {
		accept(t, s, swap(n+1, 0), nil)
	}
	var wg sync.WaitGroup
	for n := range workers {
		w := &randomWorker{s: s, rng: rand.New(rand.NewPCG(7, uint64(n))), sig: byte(n)}
		wg.Go(func() { w.work(ctx, t, rounds) })
	}
	wg.Wait()
	for what, sql := range map[string]string{
		"swaps with several second legs":                           `SELECT count(*) FROM (SELECT parent FROM submissions WHERE parent IS NOT NULL GROUP BY parent HAVING count(*) > 1) AS twice`,
		"second legs that did not fail with the first":             `SELECT count(*) FROM submissions c JOIN submissions p ON p.id = c.parent WHERE p.state = 'failed' AND c.state <> 'failed'`,
		"second legs without a swap":                               `SELECT count(*) FROM submissions c LEFT JOIN swaps w ON w.id = c.id WHERE c.parent IS NOT NULL AND w.id IS NULL`,
		"reservations of failed submissions":                       `SELECT count(*) FROM reservations v JOIN submissions p ON p.id = v.submission_id WHERE p.state = 'failed'`,
		"swaps that ended before their second leg, or the reverse": `SELECT count(*) FROM swaps w JOIN submissions c ON c.id = w.id WHERE w.ended <> (c.finalized OR c.state = 'failed')`,
		"second legs whose phase does not match their state":       `SELECT count(*) FROM swaps w JOIN submissions c ON c.id = w.id WHERE c.state <> 'failed' AND (c.state = 'completed') <> (w.phase IN ('executed', 'refunded'))`,
	} {
		if n := one[int](t, s, sql); n != 0 {
			t.Errorf("%d %s, want 0", n, what)
		}
	}
	if n := one[int](t, s, `SELECT count(*) FROM submissions WHERE parent IS NOT NULL`); n == 0 {
		t.Error("no first leg landed, so nothing was tested")
	}
}

// Fail locks both legs in the order of ids, like every statement that locks several
// rows, whichever leg has the lower id.
func TestAFailureLocksBothLegsInTheOrderOfIds(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	for n, tested := uint64(1), map[bool]bool{}; !tested[true] || !tested[false]; n++ {
		first, c := bothLegs(t, s, w, n)
		ok(t, s.Reopen(ctx, first))
		lower, higher := first.ID, c.ID
		if slices.Compare(lower[:], higher[:]) > 0 {
			lower, higher = higher, lower
		}
		tested[lower == c.ID] = true
		tx := begin(t, s)
		if _, err := tx.Exec(ctx, `SELECT FROM submissions WHERE id = $1 FOR UPDATE`, lower); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { failed <- s.Fail(ctx, first, refusal.New(refusal.RootNotFound, "stale")) }()
		waitForLock(t, s)
		if _, err := tx.Exec(ctx, `SELECT FROM submissions WHERE id = $1 FOR UPDATE NOWAIT`, higher); err != nil {
			t.Errorf("Fail waits for the leg with the lower id (second leg: %t) while it locks the other: %v", lower == c.ID, err)
		}
		ok(t, tx.Rollback(ctx))
		ok(t, <-failed)
	}
}

// The landing must not wait for a writer of the second leg: that writer may wait for the
// first leg, for example to release the leases of both.
func TestARepeatedLandingDoesNotWaitForItsSecondLeg(t *testing.T) {
	t.Parallel()
	s := open(t)
	first, c := bothLegs(t, s, worker(t, s), 1)
	ok(t, s.Reopen(t.Context(), first))
	tx := begin(t, s)
	if _, err := tx.Exec(t.Context(), `UPDATE submissions SET due_at = now() WHERE id = $1`, c.ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if lost, err := s.Complete(ctx, []submission.Landing{landing(first, 2)}); err != nil || len(lost) > 0 {
		t.Errorf("complete: %v, lost %v", err, lost)
	}
	ok(t, tx.Rollback(t.Context()))
}

// randomWorker is a process that makes random moves with its leases.
type randomWorker struct {
	s   *Store
	rng *rand.Rand
	sig byte
}

func (r *randomWorker) work(ctx context.Context, t *testing.T, rounds int) {
	s := r.s
	for range rounds {
		w := uuid.New()
		if _, err := s.Heartbeat(ctx, txmgr.Worker{ID: w}, time.Minute); err != nil {
			t.Error(err)
			return
		}
		var mine []*txmgr.Job
		for _, claim := range []func(context.Context, uuid.UUID, int) ([]*txmgr.Job, error){s.Claim, s.ClaimSwapExecutions, s.ClaimLanded} {
			got, err := claim(ctx, w, 1+r.rng.IntN(4))
			if err != nil {
				t.Errorf("claim: %v", err)
			}
			mine = append(mine, got...)
		}
		var group sync.WaitGroup
		retires := r.rng.IntN(2) == 0
		group.Go(func() { r.act(ctx, t, mine) })
		if retires { // concurrently with the moves
			group.Go(func() {
				if _, err := s.ReleaseAll(ctx, w); err != nil {
					t.Errorf("release all: %v", err)
				}
			})
		}
		group.Wait()
		if _, err := s.ReleaseAll(ctx, w); err != nil {
			t.Errorf("release all: %v", err)
		}
	}
}

func (r *randomWorker) act(ctx context.Context, t *testing.T, mine []*txmgr.Job) {
	s := r.s
	var landings, finals []submission.Landing
	for _, c := range mine {
		l := landing(c.Lease, r.sig)
		if c.Kind == submission.KindSwapExecution {
			l.Phase = []submission.Phase{submission.PhaseExecuted, submission.PhaseRefunded}[r.rng.IntN(2)]
			l.Returned = 7
		} else {
			l.Timeout = 100
		}
		var err error
		switch choice := r.rng.IntN(10); {
		case submission.FromJob(c).State == submission.Completed && choice < 4:
			err = s.Reopen(ctx, c.Lease)
		case submission.FromJob(c).State == submission.Completed && choice == 9 && c.Kind == submission.KindSwapExecution:
			finals = append(finals, l)
		case submission.FromJob(c).State != submission.Processing:
		case choice < 6:
			landings = append(landings, l)
		case choice == 6 && c.Kind != submission.KindSwapExecution:
			err = s.Fail(ctx, c.Lease, refusal.New(refusal.RootNotFound, "stale"))
		case choice == 7 && c.Kind == submission.KindSwapExecution:
			err = s.UpdateSwap(ctx, c.Lease, submission.PhaseFunded, 5)
		case choice == 8:
			err = s.Release(ctx, c.Lease, 0, "swap_price")
		}
		if err != nil && !errors.Is(err, txmgr.ErrLeaseLost) {
			t.Errorf("move: %v", err)
		}
	}
	if _, err := s.Complete(ctx, landings); err != nil {
		t.Errorf("complete: %v", err)
	}
	if _, err := s.Finalize(ctx, finals, []submission.ProofAPin{{Encoding: "plain", Signature: solana.Signature{r.sig}}}); err != nil {
		t.Errorf("finalize: %v", err)
	}
}

// Claims of first legs cost the same whether none or a hundred thousand second legs
// wait. The cost of claims of second legs depends only on how many they return.
func TestWaitingSecondLegsDoNotSlowClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Postgres server of its own")
	}
	t.Parallel()
	s := openOn(t, pgtest.Server(t).URL("postgres"))
	insertWaitingSwaps(t, s, 100_000)
	bulk(t, s, 20, "pending")
	exec(t, s, `INSERT INTO attempts (signature, submission_id, epoch, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, purpose, dead)
		SELECT sha512(id::text::bytea), id, 1, decode(repeat('ab', 200), 'hex'), pool, pool, 1, 2, 3, CASE kind WHEN 'swap' THEN 'transact' ELSE 'execute' END, true FROM submissions WHERE state <> 'pending'`)
	exec(t, s, `UPDATE submissions SET due_at = now() WHERE kind = 'swap_execution'`) // as when the swap router is back
	exec(t, s, `VACUUM ANALYZE`)
	w := worker(t, s)
	id := one[uuid.UUID](t, s, `SELECT parent FROM submissions WHERE kind = 'swap_execution' LIMIT 1`)
	pooled, err := s.Pool.Acquire(t.Context())
	ok(t, err)
	defer pooled.Release()
	for name, st := range map[string]statement{
		"claim":             {claimSQL, []any{w, 64}},
		"probe":             {probeSQL, []any{w, 64}},
		"claim second legs": {claimExecutionsSQL, []any{w, 10}},
		"claim landed":      {claimLandedSQL, []any{w, 64}},
		"count the queue":   {queueByRootSQL, []any{testPool.Bytes(), 0}},
		"read a submission": {getSQL, []any{[]uuid.UUID{id}}},
		"list swaps":        {listOpenSwapsSQL, []any{20}},
		"delete finished":   {deleteFinishedSQL, []any{time.Now(), 1000}},
		"lock":              {lockSQL, []any{id, 1, w}},
	} {
		// The relay also runs plans for the actual values: a plan for any limit reads more.
		plan := explainWith(t, pooled.Conn(), "force_custom_plan", `EXPLAIN (ANALYZE, BUFFERS, SUMMARY off, TIMING off) `, st)
		if found := scannedTables(plan); len(found) > 0 || pagesRead(plan) > 1000 {
			t.Errorf("%s scans the tables %v and reads %d pages, want none and at most 1000:\n%s", name, found, pagesRead(plan), plan)
		}
	}
}

// pagesRead returns the number of pages that the first buffers line of a plan names.
func pagesRead(plan string) int {
	for line := range strings.Lines(plan) {
		if _, after, ok := strings.Cut(line, "Buffers: shared"); ok {
			total := 0
			for field := range strings.FieldsSeq(after) {
				kind, n, _ := strings.Cut(field, "=")
				var pages int
				if _, err := fmt.Sscan(n, &pages); err == nil && (kind == "hit" || kind == "read") {
					total += pages
				}
			}
			return total
		}
	}
	return 1 << 30
}

func TestReleaseWithoutSwapsWorksOnTheMigratedSchema(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	ctx := t.Context()
	ok(t, migrateTo(ctx, pool, 3))
	s, err := New(pool)
	ok(t, err)
	// insertAsOldRelease writes what a release without swaps writes.
	insertAsOldRelease := func(n int, state string) {
		exec(t, s, `INSERT INTO submissions (id, pool, kind, state, content_hash, root_seq, due_at, signature) VALUES (gen_random_uuid(), $1, 'withdrawal', $2, sha256($3::text::bytea), 5, now(), $4)`,
			testPool.Bytes(), state, fmt.Sprint(n), make([]byte, 64))
		exec(t, s, `INSERT INTO requests (submission_id, proof, proof_sign, public_inputs, recipient, notes, spends) SELECT id, $1, 'plain', $2, $3, '{}', ARRAY[content_hash] FROM submissions WHERE content_hash = sha256($4::text::bytea)`,
			make([]byte, 256), withdrawal(1, 2).Call.Inputs.Bytes(), make([]byte, 32), fmt.Sprint(n))
		exec(t, s, `INSERT INTO attempts (signature, submission_id, epoch, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost)
			SELECT sha512(id::text::bytea), id, 1, '', pool, pool, 1, 2, 3 FROM submissions WHERE content_hash = sha256($1::text::bytea)`, fmt.Sprint(n))
	}
	insertAsOldRelease(1, "processing")
	exec(t, s, `INSERT INTO ledger_days VALUES ('2026-11-21', $1, 'transfer', 1, 2, 3, 4, 5, 6)`, make([]byte, 32))
	ok(t, Migrate(ctx, pool, slog.New(slog.DiscardHandler)))
	insertAsOldRelease(2, "pending")
	exec(t, s, `INSERT INTO ledger_days (day, payer, kind, transactions, fee, priority_fee, rent, other, received) VALUES ('2026-11-22', $1, 'swap', 1, 2, 3, -4, 5, 6)`, make([]byte, 32))
	got := claim(t, s, worker(t, s))
	if len(got) != 2 || got[0].Live[0].Purpose != txmgr.PurposeTransact || got[0].Live[0].Fee != 0 || submission.FromJob(got[1]).Swap != nil || submission.FromJob(got[1]).Parent != nil {
		t.Errorf("claimed %+v, want both submissions without a swap, and the attempt with purpose transact", got)
	}
	complete(t, s, landing(got[0].Lease, 1))
	ok(t, migrateTo(ctx, pool, 3)) // back to the old schema, which loses only the swaps
	if n := one[int](t, s, `SELECT count(*) FROM submissions`); n != 2 {
		t.Errorf("%d submissions are left, want both", n)
	}
	ok(t, migrateTo(ctx, pool, 4))
}

// An earlier release created a swap's token accounts by separate attempts. Their landing
// ends no swap, so the migration marks them dead, and no more can be recorded.
func TestMigrationMarksAttemptsForSeparateAccountsDead(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	_, c := bothLegs(t, s, w, 1)
	ok(t, s.RecordAttempt(ctx, c.Lease, attemptFor(1, txmgr.PurposeExecute)))
	ok(t, migrateTo(ctx, s.Pool, 5))
	exec(t, s, `UPDATE attempts SET purpose = 'accounts'`)
	exec(t, s, `UPDATE swaps SET phase = 'accounts_ready'`)
	exec(t, s, `INSERT INTO swaps (id, phase, timeout_slot, ended) VALUES (gen_random_uuid(), 'accounts_ready', 0, true)`)
	ok(t, Migrate(ctx, s.Pool, slog.New(slog.DiscardHandler)))
	ok(t, s.Release(ctx, c.Lease, 0, ""))
	got := claimSecondLegs(t, s, w)[0]
	if len(got.Live) != 0 || len(got.Dead) != 1 || got.Dead[0].Cost == 0 || got.Dead[0].Paid != got.Dead[0].Cost || submission.FromJob(got).Swap.Phase != submission.PhaseFunded {
		t.Errorf("live attempts %+v, dead attempts %+v, swap %s; want the attempt dead and paid, the swap funded", got.Live, got.Dead, submission.FromJob(got).Swap.Phase)
	}
	if err := s.RecordAttempt(ctx, got.Lease, attemptFor(2, "accounts")); err == nil {
		t.Error("an attempt with purpose accounts is recorded, want an error")
	}
	if n := one[int](t, s, `SELECT count(*) FROM swaps WHERE phase = 'accounts_ready'`); n != 1 {
		t.Errorf("%d ended swaps keep their phase, want 1: a migration reads only open swaps", n)
	}
}

// An earlier release stored second legs with the kind settlement, which no claim of this
// release selects.
func TestASecondLegOfAnEarlierReleaseIsClaimed(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	_, id := funded(t, s, w, 1)
	ok(t, migrateTo(ctx, s.Pool, 8))
	if kind := one[string](t, s, `SELECT kind FROM submissions WHERE id = $1`, id); kind != "settlement" {
		t.Fatalf("before the migration the kind is %s, want settlement", kind)
	}
	ok(t, Migrate(ctx, s.Pool, slog.New(slog.DiscardHandler)))
	got := claimSecondLegs(t, s, w)
	if len(got) != 1 || got[0].ID != id || submission.FromJob(got[0]).Swap.Phase != submission.PhaseFunded {
		t.Errorf("claimed %+v, want the funded swap %s", got, id)
	}
}

// Scanning a whole table for a constraint would block all writes to the table.
func TestMigrationsScanNoWholeTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s, err := New(pool)
	ok(t, err)
	ok(t, migrateTo(t.Context(), pool, 3))
	exec(t, s, `CREATE TABLE before AS SELECT conrelid, conname FROM pg_constraint WHERE contype = 'c'`)
	ok(t, Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)))
	validated := one[string](t, s, `SELECT COALESCE(string_agg(c.conname, ', '), '') FROM pg_constraint c
		WHERE contype = 'c' AND convalidated AND conrelid IN (SELECT conrelid FROM before)
		AND NOT EXISTS (SELECT FROM before b WHERE b.conrelid = c.conrelid AND b.conname = c.conname)`)
	if validated != "" {
		t.Errorf("new constraints %s of existing tables are checked for all rows, want NOT VALID", validated)
	}
}
