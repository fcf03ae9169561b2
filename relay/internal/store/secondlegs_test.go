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

// settlementOf makes a second leg in the state, by the moves that lead there,
// leased to the worker if the state has a lease.
func settlementOf(t *testing.T, s *Store, state submission.State, w uuid.UUID, n uint64) txmgr.Lease {
	t.Helper()
	if state == submission.Pending {
		_, id := funded(t, s, w, n)
		return txmgr.Lease{ID: id}
	}
	_, c := settling(t, s, w, n)
	switch state {
	case submission.Completed:
		complete(t, s, settled(c.Lease, byte(n), submission.PhaseExecuted))
	case submission.Failed:
		ok(t, s.Fail(t.Context(), c.Lease, refusal.New(refusal.ProgramError, "refused")))
	case submission.Pending, submission.Processing:
	}
	return c.Lease
}

func TestSwapPhasesChangeOnlyAsTheStateAllows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := uint64(100)
	for _, state := range States() {
		for _, move := range Moves() {
			s := open(t) // so that claims find this one alone
			n++
			w := worker(t, s)
			all := moves(ctx, s)
			all[MoveComplete] = func(l txmgr.Lease, _ uuid.UUID) error {
				return oneLease(s.Complete(ctx, []submission.Landing{settled(l, 1, submission.PhaseRefunded)}))
			}
			l := settlementOf(t, s, state, w, n)
			if move == MoveClaim && state != submission.Pending && state != submission.Failed {
				ok(t, s.Release(ctx, l, 0, "")) // the state is the same, without a lease
			}
			before := dump(t, s, l.ID)
			err := all[move](l, w)
			want, allowed := Next(state, move)
			switch {
			case allowed && err != nil:
				t.Errorf("%s from %s returns %v, want the write", move, state, err)
			case allowed:
				if got := get(t, s, l.ID).State; got != want {
					t.Errorf("%s leads from %s to %s, want %s", move, state, got, want)
				}
			case !errors.Is(err, txmgr.ErrLeaseLost):
				t.Errorf("%s from %s returns %v, want ErrLeaseLost", move, state, err)
			default:
				if diff := cmp.Diff(before, dump(t, s, l.ID)); diff != "" {
					t.Errorf("%s from %s is refused and yet changes (-before +after):\n%s", move, state, diff)
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
			_, c := settling(t, s, w, 1)
			l := c.Lease
			ok(t, s.RecordAttempt(ctx, l, attemptFor(1, txmgr.PurposeExecute)))
			if state == submission.Completed {
				complete(t, s, settled(l, 1, submission.PhaseExecuted))
			}
			ok(t, s.Release(ctx, l, 0, ""))
			claimAny(t, s, l.ID)
			before := dump(t, s, l.ID)
			end := settled(l, 1, submission.PhaseRefunded)
			end.Returned = 5
			for what, write := range map[string]func() error{
				"note":   func() error { return s.UpdateSwap(ctx, l, submission.PhaseFunded, 9) },
				"record": func() error { return s.RecordAttempt(ctx, l, attemptFor(2, txmgr.PurposeExecute)) },
				"bury": func() error {
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
				t.Errorf("writes under a lost lease change (-before +after):\n%s", diff)
			}
		})
	}
}

func TestClaimsOfFirstAndSecondLegsAreSeparate(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	var settlements []uuid.UUID
	for n := uint64(1); n <= 4; n++ {
		_, id := funded(t, s, w, n)
		settlements = append(settlements, id)
	}
	proofs := []uuid.UUID{accept(t, s, withdrawal(11, 0), nil).ID, accept(t, s, swap(12, 0), nil).ID, accept(t, s, transfer(13), nil).ID}
	// The longest due first, not the first made.
	for i, at := range []int{3, 1, 4, 2} {
		exec(t, s, `UPDATE submissions SET due_at = now() - $2 * interval '1 minute' WHERE id = $1`, settlements[i], 10-at)
	}
	if got, err := s.ClaimSwapExecutions(ctx, w, 2); err != nil || !slices.Equal(ids(got), []uuid.UUID{settlements[1], settlements[3]}) {
		t.Errorf("claimed are %v (%v), want the two that have been due longest", ids(got), err)
	}
	if got, err := s.Probe(ctx, w, 100); err != nil || len(got) != 1 || got[0].ID != proofs[0] {
		t.Errorf("probed are %v (%v), want one of the proofs", ids(got), err)
	}
	if got := claim(t, s, w); !slices.Equal(ids(got), proofs[1:]) {
		t.Errorf("claimed are %v, want the other proofs %v", ids(got), proofs[1:])
	}
	if got := claimSettlements(t, s, w); !slices.Equal(ids(got), []uuid.UUID{settlements[0], settlements[2]}) {
		t.Errorf("claimed are %v, want the other settlements", ids(got))
	}
	// What began and waits for no reason is a second leg's own affair, too.
	exec(t, s, `UPDATE submissions SET lease_owner = NULL, due_at = now() WHERE state = 'processing'`)
	if got, err := s.Probe(ctx, w, 100); err != nil || len(got) != len(proofs) {
		t.Errorf("probed are %v (%v), want the started submissions, without second legs", ids(got), err)
	}
	dead := uuid.New()
	if got := claimSettlements(t, s, dead); len(got) != 0 {
		t.Errorf("a worker that is not alive claims %v", ids(got))
	}
}

func TestLandedLegsAreWatchedAlike(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	first, c := settling(t, s, w, 1)
	complete(t, s, settled(c.Lease, 8, submission.PhaseRefunded))
	if n, err := s.ReleaseAll(ctx, w); err != nil || n != 2 {
		t.Fatalf("retire frees %d (%v), want both legs", n, err)
	}
	got, err := s.ClaimLanded(ctx, worker(t, s), 10)
	ok(t, err)
	if len(got) != 2 || got[0].ID != first.ID || got[1].ID != c.ID || submission.FromJob(got[1]).Swap.Phase != submission.PhaseRefunded || submission.FromJob(got[0]).Swap == nil || *submission.FromJob(got[1]).Parent != first.ID {
		t.Errorf("claimed to watch are %v, want both legs with their swap", ids(got))
	}
}

// A later release may bring kinds that this one knows nothing of.
func TestUnknownKindsAreNotClaimed(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	exec(t, s, `ALTER TABLE submissions DROP CONSTRAINT submissions_kind_check`)
	unknown := accept(t, s, withdrawal(1, 0), nil)
	landed := held(t, s, withdrawal(2, 0))
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
		t.Errorf("claimed are %v, want the one of a kind that is known", got)
	}
	if diff := cmp.Diff(before, dump(t, s, unknown.ID)); diff != "" {
		t.Errorf("the unknown one changed (-before +after):\n%s", diff)
	}
}

func TestUnreadableRowsAreDeferredAndBlockNoOthers(t *testing.T) {
	t.Parallel()
	damage := map[string]string{
		"invalid public inputs":         `UPDATE requests SET public_inputs = decode(repeat('ff', 264), 'hex') WHERE submission_id = $1`,
		"a missing request":             `DELETE FROM requests WHERE submission_id = $1`,
		"a settlement without its swap": `DELETE FROM swaps WHERE id = (SELECT id FROM submissions WHERE parent = $1)`,
	}
	for name, sql := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t), t.Context()
			w := worker(t, s)
			bad, badLeg := funded(t, s, w, 1)
			_, goodLeg := funded(t, s, w, 2)
			ok(t, s.Reopen(ctx, bad)) // so that both of its legs are to be claimed
			ok(t, s.RecordAttempt(ctx, bad, attempt(60)))
			ok(t, s.Release(ctx, bad, 0, ""))
			exec(t, s, sql, bad.ID)
			good := accept(t, s, withdrawal(3, 0), nil)
			damaged := 0
			for what, c := range map[string]struct {
				claim     func(context.Context, uuid.UUID, int) ([]*txmgr.Job, error)
				good, bad uuid.UUID
			}{
				"proofs":      {s.Claim, good.ID, bad.ID},
				"settlements": {s.ClaimSwapExecutions, goodLeg, badLeg},
			} {
				got, err := c.claim(ctx, w, 10)
				ok(t, err)
				if !slices.Contains(ids(got), c.good) {
					t.Errorf("of %s %v are claimed, and not the good one", what, ids(got))
				}
				if slices.Contains(ids(got), c.bad) {
					continue
				}
				damaged++
				row := one[string](t, s, `SELECT concat_ws(' ', hold_reason, lease_owner IS NULL, due_at > now() + interval '9 minutes') FROM submissions WHERE id = $1`, c.bad)
				if row != "unreadable t t" {
					t.Errorf("the damaged %s is %q, want it held as unreadable, without a lease, and due in ten minutes", what, row)
				}
			}
			if damaged == 0 {
				t.Error("nothing was damaged")
			}
			if n, err := s.CountAhead(ctx, testPool, 0, 1000, 10); err != nil || n != 3-damaged {
				t.Errorf("%d are ahead (%v), want %d: what cannot be read drives no root out of the root history", n, err, 3-damaged)
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
	states := map[string]struct {
		make       func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease
		rolledBack bool
	}{
		"waiting": {func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return settlementOf(t, s, submission.Pending, w, 1)
		}, false},
		"leased to another": {func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return settlementOf(t, s, submission.Processing, w, 1)
		}, false},
		"with an execution": {func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			l := settlementOf(t, s, submission.Processing, w, 1)
			ok(t, s.RecordAttempt(t.Context(), l, attemptFor(1, txmgr.PurposeExecute)))
			return l
		}, false},
		"settled on the fork that died": {func(t *testing.T, s *Store, w uuid.UUID) txmgr.Lease {
			return settlementOf(t, s, submission.Completed, w, 1)
		}, true},
	}
	for name, test := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t), t.Context()
			another := worker(t, s)
			leg := test.make(t, s, another)
			parent := *get(t, s, leg.ID).Parent
			first := get(t, s, parent).Lease()
			ok(t, s.Reopen(ctx, first))
			ok(t, s.Fail(ctx, first, why))
			got := get(t, s, leg.ID)
			if got.State != submission.Failed || got.Failure.Code != why.Code || got.Failure.Fields["current_root"] != "00" || got.Epoch != leg.Epoch+1 ||
				got.RolledBack != test.rolledBack || got.Signature != nil || got.CompletedAt == nil {
				t.Errorf("the settlement is %+v", got)
			}
			if err := s.UpdateSwap(ctx, leg, submission.PhaseQuoted, 1); !errors.Is(err, txmgr.ErrLeaseLost) {
				t.Errorf("its holder notes: %v, want ErrLeaseLost", err)
			}
			if err := s.RecordAttempt(ctx, leg, attemptFor(7, txmgr.PurposeExecute)); !errors.Is(err, txmgr.ErrLeaseLost) {
				t.Errorf("its holder records: %v, want ErrLeaseLost", err)
			}
			if leases, err := s.Leases(ctx, another); err != nil || len(leases) != 0 {
				t.Errorf("leases are %v (%v), want none", leases, err)
			}
			if n := one[int](t, s, `SELECT (SELECT count(*) FROM reservations) + (SELECT count(*) FROM swaps WHERE NOT ended)`); n != 0 {
				t.Errorf("%d reservations and open swaps are left, want none", n)
			}
			// The notes are free for another try.
			accept(t, s, swap(1, 0), nil)
		})
	}
}

func TestAFinalSecondLegProvesThatTheFirstLanded(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	first, c := settling(t, s, w, 1)
	complete(t, s, settled(c.Lease, 8, submission.PhaseExecuted))
	finalize(t, s, settled(c.Lease, 8, submission.PhaseExecuted))
	ok(t, s.Reopen(ctx, first))
	if err := s.Fail(ctx, first, refusal.New(refusal.RootNotFound, "stale")); !errors.Is(err, txmgr.ErrLeaseLost) {
		t.Errorf("the first leg's failure returns %v, want ErrLeaseLost", err)
	}
	if n := one[int](t, s, `SELECT count(*) FROM reservations`); n != 1 {
		t.Errorf("%d nullifiers are reserved, want the one that is spent", n)
	}
}

func TestSecondLegsNotifyTheirClients(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done, due := make(chan uuid.UUID, 100), make(chan struct{}, 100)
	go func() {
		_ = s.Listen(ctx, submission.Notifications{Done: func(id uuid.UUID) { done <- id }, Due: func() { due <- struct{}{} }})
	}()
	for heard := false; !heard; { // the listener may not be connected yet
		ok(t, s.NotifyDue(ctx))
		select {
		case <-due:
			heard = true
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("no notification within 30 s")
		}
	}
	w := worker(t, s)
	a, x := settling(t, s, w, 1)
	b, y := settling(t, s, w, 2)
	complete(t, s, settled(x.Lease, 8, submission.PhaseExecuted))
	ok(t, s.Fail(ctx, y.Lease, refusal.New(refusal.ProgramError, "refused")))
	notified := map[uuid.UUID]int{}
	for range 6 {
		select {
		case id := <-done:
			notified[id]++
		case <-ctx.Done():
			t.Fatalf("notified of %v within 30 s, want six", notified)
		}
	}
	// Of the first leg's landing, and of the second leg's end.
	if diff := cmp.Diff(map[uuid.UUID]int{a.ID: 2, b.ID: 2, x.ID: 1, y.ID: 1}, notified); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
}

func TestConcurrentClaimsNeverReturnTheSameSecondLeg(t *testing.T) {
	t.Parallel()
	s := open(t)
	const rows, claimers = 400, 8
	waiting(t, s, rows)
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
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if len(times) != rows {
		t.Errorf("%d rows were claimed, want %d", len(times), rows)
	}
}

// waiting makes swaps without the relay whose second legs wait for a price.
func waiting(t testing.TB, s *Store, rows int) {
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

// Many workers at once complete, reopen, fail, claim, update, release, retire and
// reap both legs of a few swaps: nothing deadlocks, and no swap ends up with two
// second legs or with one that outlives the first.
func TestBothLegsAtOnceNeverDeadlock(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const swaps, hands, rounds = 12, 8, 120
	for n := range uint64(swaps) {
		accept(t, s, swap(n+1, 0), nil)
	}
	var wg sync.WaitGroup
	for n := range hands {
		h := &hand{s: s, rng: rand.New(rand.NewPCG(7, uint64(n))), sig: byte(n)}
		wg.Go(func() { h.work(ctx, t, rounds) })
	}
	wg.Wait()
	for what, sql := range map[string]string{
		"swaps with several second legs":             `SELECT count(*) FROM (SELECT parent FROM submissions WHERE parent IS NOT NULL GROUP BY parent HAVING count(*) > 1) AS twice`,
		"second legs that outlive the first":         `SELECT count(*) FROM submissions c JOIN submissions p ON p.id = c.parent WHERE p.state = 'failed' AND c.state <> 'failed'`,
		"second legs without a swap, or with two":    `SELECT count(*) FROM submissions c LEFT JOIN swaps w ON w.id = c.id WHERE c.parent IS NOT NULL AND w.id IS NULL`,
		"reservations of failed submissions":         `SELECT count(*) FROM reservations v JOIN submissions p ON p.id = v.submission_id WHERE p.state = 'failed'`,
		"ends that do not agree":                     `SELECT count(*) FROM swaps w JOIN submissions c ON c.id = w.id WHERE w.ended <> (c.finalized OR c.state = 'failed')`,
		"phases of an end before it, or the reverse": `SELECT count(*) FROM swaps w JOIN submissions c ON c.id = w.id WHERE c.state <> 'failed' AND (c.state = 'completed') <> (w.phase IN ('executed', 'refunded'))`,
	} {
		if n := one[int](t, s, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	if n := one[int](t, s, `SELECT count(*) FROM submissions WHERE parent IS NOT NULL`); n == 0 {
		t.Error("no first leg ever landed: nothing was tested")
	}
}

// Every statement that locks several rows locks them in the order of ids. So
// does a failure, whichever leg has the lower id.
func TestAFailureLocksBothLegsInTheOrderOfIds(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	for n, seen := uint64(1), map[bool]bool{}; !seen[true] || !seen[false]; n++ {
		first, c := settling(t, s, w, n)
		ok(t, s.Reopen(ctx, first))
		lower, higher := first.ID, c.ID
		if slices.Compare(lower[:], higher[:]) > 0 {
			lower, higher = higher, lower
		}
		seen[lower == c.ID] = true
		tx := begin(t, s)
		if _, err := tx.Exec(ctx, `SELECT FROM submissions WHERE id = $1 FOR UPDATE`, lower); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { failed <- s.Fail(ctx, first, refusal.New(refusal.RootNotFound, "stale")) }()
		waitForLock(t, s)
		if _, err := tx.Exec(ctx, `SELECT FROM submissions WHERE id = $1 FOR UPDATE NOWAIT`, higher); err != nil {
			t.Errorf("the failure has locked one leg and waits for the other, which has the lower id (of the settlement: %t): %v", lower == c.ID, err)
		}
		ok(t, tx.Rollback(ctx))
		ok(t, <-failed)
	}
}

// A first leg that lands again does not wait for a writer of its second leg, which may
// wait for the first, as a release of the leases on both does.
func TestARepeatedLandingDoesNotWaitForItsSecondLeg(t *testing.T) {
	t.Parallel()
	s := open(t)
	first, c := settling(t, s, worker(t, s), 1)
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

// hand is a process that makes random moves with its leases.
type hand struct {
	s   *Store
	rng *rand.Rand
	sig byte
}

func (h *hand) work(ctx context.Context, t *testing.T, rounds int) {
	s := h.s
	for range rounds {
		w := uuid.New()
		if _, err := s.Heartbeat(ctx, txmgr.Worker{ID: w}, time.Minute); err != nil {
			t.Error(err)
			return
		}
		var mine []*txmgr.Job
		for _, claim := range []func(context.Context, uuid.UUID, int) ([]*txmgr.Job, error){s.Claim, s.ClaimSwapExecutions, s.ClaimLanded} {
			got, err := claim(ctx, w, 1+h.rng.IntN(4))
			if err != nil {
				t.Errorf("claim: %v", err)
			}
			mine = append(mine, got...)
		}
		var group sync.WaitGroup
		retires := h.rng.IntN(2) == 0
		group.Go(func() { h.act(ctx, t, mine) })
		if retires { // while it works on them
			group.Go(func() {
				if _, err := s.ReleaseAll(ctx, w); err != nil {
					t.Errorf("retire: %v", err)
				}
			})
		}
		group.Wait()
		if _, err := s.ReleaseAll(ctx, w); err != nil {
			t.Errorf("retire: %v", err)
		}
	}
}

func (h *hand) act(ctx context.Context, t *testing.T, mine []*txmgr.Job) {
	s := h.s
	var landings, finals []submission.Landing
	for _, c := range mine {
		l := landing(c.Lease, h.sig)
		if c.Kind == submission.KindSwapExecution {
			l.Phase = []submission.Phase{submission.PhaseExecuted, submission.PhaseRefunded}[h.rng.IntN(2)]
			l.Returned = 7
		} else {
			l.Timeout = 100
		}
		var err error
		switch choice := h.rng.IntN(10); {
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
			t.Errorf("act: %v", err)
		}
	}
	if _, err := s.Complete(ctx, landings); err != nil {
		t.Errorf("complete: %v", err)
	}
	if _, err := s.Finalize(ctx, finals, []submission.ProofAPin{{Encoding: "plain", Signature: solana.Signature{h.sig}}}); err != nil {
		t.Errorf("finalize: %v", err)
	}
}

// Claims of proofs cost the same whether none or a hundred thousand second legs
// wait, and claims of second legs cost as much as they find.
func TestWaitingSecondLegsDoNotSlowClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills a server of its own")
	}
	t.Parallel()
	s := openOn(t, pgtest.Server(t).URL("postgres"))
	waiting(t, s, 100_000)
	bulk(t, s, 20, "pending")
	exec(t, s, `INSERT INTO attempts (signature, submission_id, epoch, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost, purpose, dead)
		SELECT sha512(id::text::bytea), id, 1, decode(repeat('ab', 200), 'hex'), pool, pool, 1, 2, 3, CASE kind WHEN 'swap' THEN 'transact' ELSE 'execute' END, true FROM submissions WHERE state <> 'pending'`)
	exec(t, s, `UPDATE submissions SET due_at = now() WHERE kind = 'swap_execution'`) // their router is back, say
	exec(t, s, `VACUUM ANALYZE`)
	w := worker(t, s)
	id := one[uuid.UUID](t, s, `SELECT parent FROM submissions WHERE kind = 'swap_execution' LIMIT 1`)
	pooled, err := s.Pool.Acquire(t.Context())
	ok(t, err)
	defer pooled.Release()
	for name, st := range map[string]statement{
		"claim":             {claimSQL, []any{w, 64}},
		"probe":             {probeSQL, []any{w, 64}},
		"claim settlements": {claimExecutionsSQL, []any{w, 10}},
		"claim landed":      {claimLandedSQL, []any{w, 64}},
		"ahead":             {aheadSQL, []any{testPool.Bytes(), 500, 100, 0}},
		"read a submission": {getSQL, []any{id}},
		"list swaps":        {listOpenSwapsSQL, []any{20}},
		"delete finished":   {deleteFinishedSQL, []any{time.Now(), 1000}},
		"lock":              {lockSQL, []any{id, 1, w}},
	} {
		// Planned for its values, as it is run: a plan for any limit reads more.
		plan := explainWith(t, pooled.Conn(), "force_custom_plan", `EXPLAIN (ANALYZE, BUFFERS, SUMMARY off, TIMING off) `, st)
		if found := scans(plan); len(found) > 0 || touched(plan) > 1000 {
			t.Errorf("%s reads all of %v and touches %d pages, want none and at most 1000:\n%s", name, found, touched(plan), plan)
		}
	}
}

// touched returns the pages in the first line of a plan.
func touched(plan string) int {
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

func TestTheSchemaBeforeSwapsIsExpandedAndOldReleasesGoOn(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	ctx := t.Context()
	ok(t, migrateTo(ctx, pool, 3))
	s, err := New(pool)
	ok(t, err)
	// What a release before swaps writes, before and after the migration.
	old := func(n int, state string) {
		exec(t, s, `INSERT INTO submissions (id, pool, kind, state, content_hash, root_seq, due_at, signature) VALUES (gen_random_uuid(), $1, 'withdrawal', $2, sha256($3::text::bytea), 5, now(), $4)`,
			testPool.Bytes(), state, fmt.Sprint(n), make([]byte, 64))
		exec(t, s, `INSERT INTO requests (submission_id, proof, proof_sign, public_inputs, recipient, notes, spends) SELECT id, $1, 'plain', $2, $3, '{}', ARRAY[content_hash] FROM submissions WHERE content_hash = sha256($4::text::bytea)`,
			make([]byte, 256), withdrawal(1, 2).Call.Inputs.Bytes(), make([]byte, 32), fmt.Sprint(n))
		exec(t, s, `INSERT INTO attempts (signature, submission_id, epoch, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost)
			SELECT sha512(id::text::bytea), id, 1, '', pool, pool, 1, 2, 3 FROM submissions WHERE content_hash = sha256($1::text::bytea)`, fmt.Sprint(n))
	}
	old(1, "processing")
	exec(t, s, `INSERT INTO ledger_days VALUES ('2026-11-21', $1, 'transfer', 1, 2, 3, 4, 5, 6)`, make([]byte, 32))
	ok(t, Migrate(ctx, pool, slog.New(slog.DiscardHandler)))
	old(2, "pending")
	exec(t, s, `INSERT INTO ledger_days (day, payer, kind, transactions, fee, priority_fee, rent, other, received) VALUES ('2026-11-22', $1, 'swap', 1, 2, 3, -4, 5, 6)`, make([]byte, 32))
	got := claim(t, s, worker(t, s))
	if len(got) != 2 || got[0].Live[0].Purpose != txmgr.PurposeTransact || got[0].Live[0].Fee != 0 || submission.FromJob(got[1]).Swap != nil || submission.FromJob(got[1]).Parent != nil {
		t.Errorf("claimed are %+v, want both, whose attempts put a Transact on the chain", got)
	}
	complete(t, s, landing(got[0].Lease, 1))
	ok(t, migrateTo(ctx, pool, 3)) // and back, which loses the swaps alone
	if n := one[int](t, s, `SELECT count(*) FROM submissions`); n != 2 {
		t.Errorf("%d submissions are left, want both", n)
	}
	ok(t, migrateTo(ctx, pool, 4))
}

// TestSeparateAccountsOfAnEarlierReleaseAreDropped: their landing would end no
// swap, and no more are made.
func TestSeparateAccountsOfAnEarlierReleaseAreDropped(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	_, c := settling(t, s, w, 1)
	ok(t, s.RecordAttempt(ctx, c.Lease, attemptFor(1, txmgr.PurposeExecute)))
	ok(t, migrateTo(ctx, s.Pool, 5))
	exec(t, s, `UPDATE attempts SET purpose = 'accounts'`)
	exec(t, s, `UPDATE swaps SET phase = 'accounts_ready'`)
	exec(t, s, `INSERT INTO swaps (id, phase, timeout_slot, ended) VALUES (gen_random_uuid(), 'accounts_ready', 0, true)`)
	ok(t, Migrate(ctx, s.Pool, slog.New(slog.DiscardHandler)))
	ok(t, s.Release(ctx, c.Lease, 0, ""))
	got := claimSettlements(t, s, w)[0]
	if len(got.Live) != 0 || len(got.Dead) != 1 || got.Dead[0].Cost == 0 || got.Dead[0].Paid != got.Dead[0].Cost || submission.FromJob(got).Swap.Phase != submission.PhaseFunded {
		t.Errorf("live are %+v, dead %+v, and the swap is %s: want the accounts dead and paid, the swap funded", got.Live, got.Dead, submission.FromJob(got).Swap.Phase)
	}
	if err := s.RecordAttempt(ctx, got.Lease, attemptFor(2, "accounts")); err == nil {
		t.Error("accounts are made apart again")
	}
	if n := one[int](t, s, `SELECT count(*) FROM swaps WHERE phase = 'accounts_ready'`); n != 1 {
		t.Errorf("%d swaps that had ended were left as they are, want 1: an upgrade reads only what is open", n)
	}
}

// TestASecondLegOfAnEarlierReleaseIsClaimed: it was stored as a settlement, which a claim
// would pass over for good.
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
	got := claimSettlements(t, s, w)
	if len(got) != 1 || got[0].ID != id || submission.FromJob(got[0]).Swap.Phase != submission.PhaseFunded {
		t.Errorf("claimed are %+v, want the funded swap %s", got, id)
	}
}

// TestAnUpgradeScansNoWholeTable: it would block all writes to it.
func TestAnUpgradeScansNoWholeTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s, err := New(pool)
	ok(t, err)
	ok(t, migrateTo(t.Context(), pool, 3))
	exec(t, s, `CREATE TABLE before AS SELECT conrelid, conname FROM pg_constraint WHERE contype = 'c'`)
	ok(t, Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)))
	scanned := one[string](t, s, `SELECT COALESCE(string_agg(c.conname, ', '), '') FROM pg_constraint c
		WHERE contype = 'c' AND convalidated AND conrelid IN (SELECT conrelid FROM before)
		AND NOT EXISTS (SELECT FROM before b WHERE b.conrelid = c.conrelid AND b.conname = c.conname)`)
	if scanned != "" {
		t.Errorf("%s of tables that were there before are checked for all rows, want NOT VALID", scanned)
	}
}
