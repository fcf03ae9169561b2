package store

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const firstTimeout = 271

// swap spends two notes; 0 is no note.
func swap(n0, n1 uint64) *submission.Submission {
	sub := withdrawal(n0, n1)
	sub.Call.Swap = &shieldpool.SwapTerms{OutputMint: solana.PublicKey{4}, RecipientATA: solana.PublicKey{5}, MinOutput: 1 << 63}
	sub.Kind = sub.Call.Kind()
	return sub
}

// attemptFor is an attempt of a second leg.
func attemptFor(n byte, p txmgr.Purpose) txmgr.Attempt {
	a := attempt(n)
	a.Purpose = p
	return a
}

// funded accepts a swap and lands its first leg. It returns the lease of the first leg
// and the id of the second.
func funded(t testing.TB, s *Store, w uuid.UUID, n uint64) (first txmgr.Lease, second uuid.UUID) {
	t.Helper()
	sub, err := s.Accept(t.Context(), swap(n, 0), nil, &w)
	ok(t, err)
	l := landing(sub.Lease(), byte(n))
	l.Timeout = firstTimeout
	complete(t, s, l)
	return l.Lease, one[uuid.UUID](t, s, `SELECT id FROM submissions WHERE parent = $1`, sub.ID)
}

// claimSecondLegs claims all second legs that are due.
func claimSecondLegs(t testing.TB, s *Store, w uuid.UUID) []*txmgr.Job {
	t.Helper()
	claimed, err := s.ClaimSwapExecutions(t.Context(), w, 1000)
	ok(t, err)
	return claimed
}

// bothLegs creates a swap whose two legs are leased to the worker.
func bothLegs(t testing.TB, s *Store, w uuid.UUID, n uint64) (first txmgr.Lease, c *txmgr.Job) {
	t.Helper()
	first, id := funded(t, s, w, n)
	for _, c := range claimSecondLegs(t, s, w) {
		if c.ID == id {
			return first, c
		}
	}
	t.Fatal("the second leg is not claimed")
	return first, nil
}

// secondLegLanding is a landing of a second leg, which puts the swap into a phase.
func secondLegLanding(l txmgr.Lease, n byte, p submission.Phase) submission.Landing {
	out := landing(l, n)
	out.Phase = p
	return out
}

func phase(t testing.TB, s *Store, secondLeg uuid.UUID) submission.Phase {
	t.Helper()
	return one[submission.Phase](t, s, `SELECT phase FROM swaps WHERE id = $1`, secondLeg)
}

func TestAnAcceptedSwapIsStoredWithoutASecondLeg(t *testing.T) {
	t.Parallel()
	s := open(t)
	sub := swap(1, 2)
	accept(t, s, sub, nil)
	if diff := cmp.Diff(sub, get(t, s, sub.ID)); diff != "" {
		t.Errorf("stored submission (-want +got):\n%s", diff)
	}
	again := swap(1, 2)
	if got, err := s.FindRepeated(t.Context(), again, nil); err != nil || got == nil || got.ID != sub.ID {
		t.Errorf("the same swap again returns %v (%v), want the first", got, err)
	}
	again.Call.Swap.MinOutput--
	_, err := s.FindRepeated(t.Context(), again, nil)
	_ = wantCode(t, err, refusal.NullifierReserved)
	if n := one[int](t, s, `SELECT count(*) FROM swaps`); n != 0 {
		t.Errorf("%d swaps are stored before a first leg landed, want 0", n)
	}
}

func TestLandingOfTheFirstLegCreatesOneSecondLeg(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	first, id := funded(t, s, w, 1)
	claimed := claimSecondLegs(t, s, w)
	if len(claimed) != 1 {
		t.Fatalf("claimed %v, want one second leg, due at once", ids(claimed))
	}
	c := claimed[0]
	parent := get(t, s, first.ID)
	want := &submission.Submission{
		ID: id, Pool: testPool, Kind: submission.KindSwapExecution, State: submission.Processing, Call: parent.Call, ProofAEncoding: "plain",
		RootSeq: 1<<63 - 1, Epoch: 1, Owner: w, Parent: &first.ID,
		Swap:      &submission.Swap{Phase: submission.PhaseFunded, TimeoutSlot: firstTimeout, CreatedAt: c.CreatedAt},
		CreatedAt: c.CreatedAt,
	}
	if diff := cmp.Diff(want, submission.FromJob(c)); diff != "" {
		t.Errorf("claimed second leg (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, get(t, s, id)); diff != "" {
		t.Errorf("stored second leg (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Swap, parent.Swap); diff != "" || parent.Parent != nil {
		t.Errorf("the first leg's swap (-want +got):\n%s", diff)
	}
	// The fork is abandoned and the first leg lands again: the second leg stays unchanged.
	ok(t, s.Reopen(ctx, first))
	again := landing(first, 9)
	again.Timeout = 999
	complete(t, s, again)
	if n := one[int](t, s, `SELECT count(*) FROM submissions WHERE kind = 'swap_execution'`); n != 1 {
		t.Errorf("%d second legs, want one", n)
	}
	if diff := cmp.Diff(want.Swap, get(t, s, first.ID).Swap); diff != "" {
		t.Errorf("the first leg's swap after another landing (-want +got):\n%s", diff)
	}
	// Submissions of other kinds have no second leg.
	complete(t, s, landing(acceptLeased(t, s, withdrawal(5, 0)).Lease, 7))
	if n := one[int](t, s, `SELECT count(*) FROM swaps`); n != 1 {
		t.Errorf("%d swaps, want one", n)
	}
}

func TestABatchLandsBothLegsOfManySwaps(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	_, claimed := bothLegs(t, s, w, 1)
	batch := []submission.Landing{secondLegLanding(claimed.Lease, 50, submission.PhaseExecuted)}
	for n := uint64(2); n <= 5; n++ {
		sub, err := s.Accept(ctx, swap(n, 0), nil, &w)
		ok(t, err)
		l := landing(sub.Lease(), byte(n))
		l.Timeout = 100 * n
		batch = append(batch, l)
	}
	batch[3].Epoch++ // the epoch of another lease
	lost, err := s.Complete(ctx, batch)
	if diff := cmp.Diff([]txmgr.Lease{batch[3].Lease}, lost); diff != "" || err != nil {
		t.Errorf("leases that Complete reports lost (%v) (-want +got):\n%s", err, diff)
	}
	var timeouts []uint64
	for _, c := range claimSecondLegs(t, s, w) {
		timeouts = append(timeouts, submission.FromJob(c).Swap.TimeoutSlot)
	}
	if diff := cmp.Diff([]uint64{200, 300, 500}, sorted(timeouts)); diff != "" {
		t.Errorf("timeouts of the created second legs (-want +got):\n%s", diff)
	}
	if got := phase(t, s, claimed.ID); got != submission.PhaseExecuted {
		t.Errorf("the swap whose second leg landed is %s, want executed", got)
	}
}

func TestBothLegsShowTheOutcomeOfTheSwap(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]submission.Phase{"executed": submission.PhaseExecuted, "refunded": submission.PhaseRefunded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t), t.Context()
			w := worker(t, s)
			first, c := bothLegs(t, s, w, 1)
			ok(t, s.Release(ctx, c.Lease, 0, "swap_price"))
			for _, id := range []uuid.UUID{first.ID, c.ID} {
				if got := get(t, s, id).Swap; got.HeldBy != "swap_price" || got.Signature != nil || got.EndedAt != nil {
					t.Errorf("while the second leg waits, the swap is %+v; want it held by swap_price without an end", got)
				}
			}
			c = claimSecondLegs(t, s, w)[0]
			if submission.FromJob(c).Swap.HeldBy != "swap_price" || c.Hold != "swap_price" {
				t.Errorf("the claimed swap is held by %q, and the job by %q; want swap_price for both", submission.FromJob(c).Swap.HeldBy, c.Hold)
			}
			complete(t, s, secondLegLanding(c.Lease, 8, end))
			for _, finalized := range []bool{false, true} {
				if finalized {
					l := secondLegLanding(c.Lease, 8, end)
					l.Slot = 99
					finalize(t, s, l)
				}
				for _, id := range []uuid.UUID{first.ID, c.ID} {
					got := get(t, s, id).Swap
					want := &submission.Swap{
						Phase: end, TimeoutSlot: firstTimeout, Signature: &solana.Signature{8}, Slot: 78, Finalized: finalized, EndedAt: got.EndedAt, CreatedAt: c.CreatedAt,
					}
					if finalized {
						want.Slot = 99
					}
					if diff := cmp.Diff(want, got); diff != "" || got.EndedAt == nil || got.EndedAt.Before(got.CreatedAt) {
						t.Errorf("swap, finalized: %t (-want +got):\n%s", finalized, diff)
					}
				}
			}
			if !one[bool](t, s, `SELECT ended FROM swaps`) {
				t.Error("the swap has not ended, although its second leg is final")
			}
			if got := get(t, s, first.ID); *got.Signature != (solana.Signature{1}) || got.Finalized {
				t.Errorf("the first leg is %+v, want it unchanged", got)
			}
		})
	}
}

func TestASwapIsQuotedWhileAnExecutionIsLive(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	_, c := bothLegs(t, s, w, 1)
	_, other := bothLegs(t, s, w, 2)
	record := func(n byte, p txmgr.Purpose) func() error {
		return func() error { return s.RecordAttempt(ctx, c.Lease, attemptFor(n, p)) }
	}
	markDead := func(signatures ...byte) func() error {
		var dead []txmgr.DeadAttempt
		for _, n := range signatures {
			dead = append(dead, txmgr.DeadAttempt{Signature: solana.Signature{n}})
		}
		return func() error { return s.MarkAttemptsDead(ctx, c.Lease, dead) }
	}
	for _, step := range []struct {
		what string
		do   func() error
		want submission.Phase
	}{
		{"the timeout is stored", func() error { return s.UpdateSwap(ctx, c.Lease, submission.PhaseFunded, 300) }, submission.PhaseFunded},
		{"an execution is signed", record(2, txmgr.PurposeExecute), submission.PhaseQuoted},
		{"another is signed", record(3, txmgr.PurposeExecute), submission.PhaseQuoted},
		{"one of the two is marked dead", markDead(2), submission.PhaseQuoted},
		{"the same one is marked dead again", markDead(2), submission.PhaseQuoted},
		{"the other is marked dead", markDead(3), submission.PhaseFunded},
		{"a third execution is signed", record(4, txmgr.PurposeExecute), submission.PhaseQuoted},
		{"a refund is signed too", record(5, txmgr.PurposeRefund), submission.PhaseQuoted},
		{"the refund is marked dead", markDead(5), submission.PhaseQuoted},
		{"all are marked dead at once", markDead(4, 5), submission.PhaseFunded},
		{"only a refund is live", record(6, txmgr.PurposeRefund), submission.PhaseFunded},
		{"nothing is marked dead", markDead(), submission.PhaseFunded},
		{"an unknown attempt is marked dead", markDead(77), submission.PhaseFunded},
		{"the phase is stored without a timeout", func() error { return s.UpdateSwap(ctx, c.Lease, submission.PhaseFunded, 0) }, submission.PhaseFunded},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		if got := phase(t, s, c.ID); got != step.want {
			t.Errorf("%s: the swap is %s, want %s", step.what, got, step.want)
		}
		if got := phase(t, s, other.ID); got != submission.PhaseFunded {
			t.Fatalf("%s: another swap is %s, want funded", step.what, got)
		}
	}
	if got := get(t, s, c.ID).Swap.TimeoutSlot; got != 300 {
		t.Errorf("the timeout slot is %d, want the recorded 300: a timeout of 0 changes nothing", got)
	}
	// The attempts of a claim have purpose and fee.
	ok(t, s.Release(ctx, c.Lease, 0, ""))
	got := claimSecondLegs(t, s, w)[0]
	if len(got.Live) != 1 || got.Live[0].Purpose != txmgr.PurposeRefund || got.Live[0].Fee != 5 || len(got.Dead) != 4 || got.Dead[0].Purpose != txmgr.PurposeExecute {
		t.Errorf("live attempts %+v, dead attempts %+v; want the refund and 4 others", got.Live, got.Dead)
	}
}

func TestOnlyALandingEndsASwapAndOnlyAForkReopensIt(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	first, c := bothLegs(t, s, w, 1)
	for _, p := range []submission.Phase{submission.PhaseExecuted, submission.PhaseRefunded, "", "gone"} {
		if err := s.UpdateSwap(ctx, c.Lease, p, 1); err == nil || phase(t, s, c.ID) != submission.PhaseFunded {
			t.Errorf("UpdateSwap to phase %q returns %v, want an error and no change", p, err)
		}
	}
	if err := s.UpdateSwap(ctx, first, submission.PhaseQuoted, 1); err != txmgr.ErrLeaseLost { //nolint:errorlint // exactly this
		t.Errorf("an update of the first leg returns %v, want ErrLeaseLost", err)
	}
	complete(t, s, secondLegLanding(c.Lease, 8, submission.PhaseExecuted))
	if err := s.UpdateSwap(ctx, c.Lease, submission.PhaseFunded, 1); err != txmgr.ErrLeaseLost { //nolint:errorlint // exactly this
		t.Errorf("an update of an ended swap returns %v, want ErrLeaseLost", err)
	}
	ok(t, s.Reopen(ctx, c.Lease))
	got := get(t, s, first.ID)
	if got.Swap.Phase != submission.PhaseFunded || got.Swap.Signature != nil || got.Swap.EndedAt != nil || got.State != submission.Completed {
		t.Errorf("after the second leg's rollback the first leg is %s and the swap %+v, want completed and funded", got.State, got.Swap)
	}
	if leg := get(t, s, c.ID); leg.State != submission.Processing || !leg.RolledBack {
		t.Errorf("the second leg is %+v, want it processing and rolled back", leg)
	}
	// A rollback of the first leg does not change the swap's phase.
	ok(t, s.UpdateSwap(ctx, c.Lease, submission.PhaseFunded, 5))
	ok(t, s.Reopen(ctx, first))
	if got := phase(t, s, c.ID); got != submission.PhaseFunded {
		t.Errorf("after the first leg's rollback the swap is %s, want funded", got)
	}
}

func TestReturnedLamportsAreSubtractedFromTheCapsOnce(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	_, c := bothLegs(t, s, w, 1)
	_, other := bothLegs(t, s, w, 2)
	for n, l := range map[byte]txmgr.Lease{1: c.Lease, 2: other.Lease} {
		a := attemptFor(n, txmgr.PurposeExecute)
		a.Cost = 6_000_000
		ok(t, s.RecordAttempt(ctx, l, a))
		ok(t, s.MarkAttemptsDead(ctx, l, []txmgr.DeadAttempt{{Signature: a.Signature, Paid: a.Cost}})) // the caps count its whole cost
	}
	if got := total(t, s); got[false] != 12_000_000 || got[true] != 0 {
		t.Fatalf("spent lamports are %v, want the costs of both", got)
	}
	first, second := secondLegLanding(c.Lease, 8, submission.PhaseExecuted), secondLegLanding(other.Lease, 9, submission.PhaseExecuted)
	first.Returned, second.Returned = 4_000_000, 500_000
	complete(t, s, first)
	complete(t, s, second)
	if got := total(t, s); got[false] != 12_000_000 {
		t.Errorf("before finality %d lamports are spent, want 12000000", got[false])
	}
	pin := submission.ProofAPin{Encoding: "plain", Signature: solana.Signature{8}}
	for range 2 { // the repetition finds both leases lost
		if _, err := s.Finalize(ctx, []submission.Landing{first, second}, []submission.ProofAPin{pin}); err != nil {
			t.Error(err)
		}
		if got := total(t, s); got[false] != 7_500_000 || got[true] != 0 {
			t.Errorf("after finality the spent lamports are %v, want 7500000", got)
		}
	}
}

func TestBacklogCountsSecondLegsAndQueueByRootDoesNot(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	for n := uint64(1); n <= 3; n++ {
		_, _ = funded(t, s, w, n)
	}
	c, err := s.ClaimSwapExecutions(ctx, w, 1)
	ok(t, err)
	ok(t, s.Release(ctx, c[0].Lease, time.Hour, "swap_price"))
	_, err = s.ClaimSwapExecutions(ctx, w, 1)
	ok(t, err)
	sub := accept(t, s, withdrawal(9, 0), nil)
	exec(t, s, `UPDATE submissions SET root_seq = 500 WHERE id = $1`, sub.ID)
	b, err := s.Backlog(ctx)
	ok(t, err)
	if b.Pending != 2 || b.Processing != 2 || b.Due != 2 || !cmp.Equal(b.Held, map[string]int64{"swap_price": 1}) {
		t.Errorf("the backlog is %+v, want 2 pending and due, 1 held and 1 leased", b)
	}
	jobs := one[[]int64](t, s, `SELECT array_agg(job_id ORDER BY parent IS NOT NULL, job_id) FROM submissions WHERE state IN ('pending', 'processing')`)
	if diff := cmp.Diff(jobs, b.QueuedJobs); diff != "" {
		t.Errorf("queued jobs, second legs last (-want +got):\n%s", diff)
	}
	q, err := s.QueueByRoot(ctx, testPool, 0)
	ok(t, err)
	if diff := cmp.Diff(q, submission.QueueByRoot{Waiting: []submission.AtRoot{{Seq: 500, Submissions: 1}}}); diff != "" {
		t.Errorf("the queue, only of the withdrawal (-got +want):\n%s", diff)
	}
}

func TestLedgerAttemptsOfBothLegsHaveTheSwapsId(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w := worker(t, s)
	sub, err := s.Accept(ctx, swap(1, 0), nil, &w)
	ok(t, err)
	ok(t, s.RecordAttempt(ctx, sub.Lease(), attempt(20)))
	complete(t, s, landing(sub.Lease(), 20))
	c := claimSecondLegs(t, s, w)[0]
	want := map[solana.Signature]ledger.Attempt{{20}: {Submission: sub.ID, Kind: shieldpool.KindSwap, Purpose: txmgr.PurposeTransact}}
	for n, p := range map[byte]txmgr.Purpose{2: txmgr.PurposeExecute, 3: txmgr.PurposeRefund} {
		ok(t, s.RecordAttempt(ctx, c.Lease, attemptFor(n, p)))
		want[solana.Signature{n}] = ledger.Attempt{Submission: sub.ID, Kind: shieldpool.KindSwap, Purpose: p}
	}
	got, err := s.Ledger().Attempts(ctx, []solana.Signature{{1}, {2}, {3}, {20}, {4}})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("attempts (%v) (-want +got):\n%s", err, diff)
	}
}
