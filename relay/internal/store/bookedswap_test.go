package store

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// bookedSwap is a swap whose first leg costs 1000 lamports and books 500 for the second leg.
// An execution costs 300, with a fee of 5, and returns 200.
type bookedSwap struct {
	t      *testing.T
	s      *Store
	worker uuid.UUID
	first  txmgr.Lease
	second txmgr.Lease
}

func (b *bookedSwap) signFirst(n byte) {
	a := attempt(n)
	a.Cost, a.SecondLegCost = 1000, 500
	ok(b.t, b.s.RecordAttempt(b.t.Context(), b.first, a))
}

func (b *bookedSwap) signSecond(n byte, p txmgr.Purpose) {
	a := attemptFor(n, p)
	a.Cost = 300
	ok(b.t, b.s.RecordAttempt(b.t.Context(), b.second, a))
}

func (b *bookedSwap) markDead(l txmgr.Lease, n byte, paid uint64) {
	ok(b.t, b.s.MarkAttemptsDead(b.t.Context(), l, []txmgr.DeadAttempt{{Signature: solana.Signature{n}, Paid: paid}}))
}

func (b *bookedSwap) landFirst(n byte) { complete(b.t, b.s, landing(b.first, n)) }

// begin lands the first leg and claims the second.
func (b *bookedSwap) begin() {
	b.signFirst(1)
	b.landFirst(1)
	b.second = claimSecondLegs(b.t, b.s, b.worker)[0].Lease
}

// land completes and finalizes the second leg.
func (b *bookedSwap) land(n byte, p submission.Phase, returned uint64) {
	l := secondLegLanding(b.second, n, p)
	l.Returned = returned
	complete(b.t, b.s, l)
	finalize(b.t, b.s, l)
}

// The booked lamports are never less than the spent ones, and equal to them at the end.
func TestFirstLegBooksTheCostOfBothLegs(t *testing.T) {
	t.Parallel()
	type step struct {
		do            func(b *bookedSwap)
		spent, booked int64
	}
	begin := step{(*bookedSwap).begin, 1000, 1500}
	execute := func(n byte) func(b *bookedSwap) {
		return func(b *bookedSwap) { b.signSecond(n, txmgr.PurposeExecute) }
	}
	landed := func(n byte, p submission.Phase, returned uint64) func(b *bookedSwap) {
		return func(b *bookedSwap) { b.land(n, p, returned) }
	}
	executionDead := func(n byte, paid uint64) func(b *bookedSwap) {
		return func(b *bookedSwap) { b.markDead(b.second, n, paid) }
	}
	tests := map[string][]step{
		"executed": {begin, {execute(8), 1000, 1500}, {landed(8, submission.PhaseExecuted, 200), 1100, 1100}},
		"refunded": {begin, {func(b *bookedSwap) { b.signSecond(8, txmgr.PurposeRefund) }, 1000, 1500}, {landed(8, submission.PhaseRefunded, 0), 1300, 1300}},
		"an execution fails on the chain, the next lands": {
			begin, {execute(8), 1000, 1500}, {executionDead(8, 5), 1005, 1505}, {executionDead(8, 5), 1005, 1505}, {execute(9), 1005, 1505}, {landed(9, submission.PhaseExecuted, 200), 1105, 1105},
		},
		"another party executes the swap":           {begin, {execute(8), 1000, 1500}, {executionDead(8, 5), 1005, 1505}, {landed(99, submission.PhaseExecuted, 0), 1005, 1005}},
		"an execution marked dead lands":            {begin, {execute(8), 1000, 1500}, {executionDead(8, 0), 1000, 1500}, {landed(8, submission.PhaseExecuted, 200), 1100, 1100}},
		"the first leg is dead and is signed again": {{func(b *bookedSwap) { b.signFirst(1) }, 0, 1500}, {func(b *bookedSwap) { b.markDead(b.first, 1, 0) }, 0, 0}, {func(b *bookedSwap) { b.signFirst(2) }, 0, 1500}},
		"an early attempt of the first leg lands": {
			{func(b *bookedSwap) { b.signFirst(1); b.signFirst(2) }, 0, 3000},
			{func(b *bookedSwap) { b.landFirst(2); finalize(b.t, b.s, landing(b.first, 2)) }, 1005, 1505},
			{func(b *bookedSwap) {
				b.second = claimSecondLegs(b.t, b.s, b.worker)[0].Lease
				b.signSecond(8, txmgr.PurposeExecute)
			}, 1005, 1505},
			{landed(8, submission.PhaseExecuted, 200), 1105, 1105},
		},
		"both legs are final at once, after an early attempt of the first leg": {
			{func(b *bookedSwap) { b.signFirst(1); b.signFirst(2); b.landFirst(2) }, 1000, 3000},
			{func(b *bookedSwap) {
				b.second = claimSecondLegs(b.t, b.s, b.worker)[0].Lease
				b.signSecond(8, txmgr.PurposeExecute)
			}, 1000, 3000},
			{func(b *bookedSwap) {
				second := secondLegLanding(b.second, 8, submission.PhaseExecuted)
				second.Returned = 200
				complete(b.t, b.s, second)
				lost, err := b.s.Finalize(b.t.Context(), []submission.Landing{landing(b.first, 2), second}, nil)
				if ok(b.t, err); len(lost) > 0 {
					b.t.Fatalf("leases %v are lost", lost)
				}
			}, 1105, 1105},
		},
		"the first leg fails on the chain": {{func(b *bookedSwap) { b.signFirst(1) }, 0, 1500}, {func(b *bookedSwap) { b.markDead(b.first, 1, 5) }, 5, 5}},
		"a fork undoes both legs": {
			begin, {execute(8), 1000, 1500},
			{func(b *bookedSwap) { ok(b.t, b.s.Reopen(b.t.Context(), b.first)); b.markDead(b.first, 1, 0) }, 0, 0},
			{executionDead(8, 0), 0, 0},
			{func(b *bookedSwap) { b.signFirst(2); b.landFirst(2) }, 1000, 1500},
			{execute(9), 1000, 1500}, {landed(9, submission.PhaseExecuted, 200), 1100, 1100},
		},
		"the first leg is rolled back after the end": {
			begin, {execute(8), 1000, 1500}, {landed(8, submission.PhaseExecuted, 200), 1100, 1100},
			{func(b *bookedSwap) { ok(b.t, b.s.Reopen(b.t.Context(), b.first)); b.markDead(b.first, 1, 0) }, 100, 100},
		},
		"an earlier release signed both legs": {
			{func(b *bookedSwap) {
				b.begin()
				b.signSecond(8, txmgr.PurposeExecute)
				exec(b.t, b.s, `UPDATE attempts SET booked = NULL`)
				exec(b.t, b.s, `DELETE FROM spend_buckets`)
				spend(b.t, b.s, false, 1000+300)
			}, 1000, 1300},
			{landed(8, submission.PhaseExecuted, 200), 1100, 1100},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			w := worker(t, s)
			b := &bookedSwap{t: t, s: s, worker: w, first: acceptLeased(t, s, swap(1, 0)).Lease}
			exec(t, s, `UPDATE submissions SET lease_owner = $1 WHERE id = $2`, w, b.first.ID)
			b.first.Owner = w
			for i, step := range steps {
				step.do(b)
				if got := total(t, s)[false]; got != step.booked || got < step.spent {
					t.Errorf("step %d: %d lamports are booked, want %d, which includes the %d spent", i, got, step.booked, step.spent)
				}
			}
		})
	}
}

// An attempt that another attempt of the submission overtook books its fee, whichever was signed first.
func TestOvertakenAttemptsBookTheirFee(t *testing.T) {
	t.Parallel()
	for name, lands := range map[string]byte{"the early attempt lands": 2, "the first attempt lands": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			l := acceptLeased(t, s, transfer(1)).Lease
			for n := range byte(2) {
				a := attempt(n + 1)
				a.Cost = 1000
				ok(t, s.RecordAttempt(t.Context(), l, a))
			}
			complete(t, s, landing(l, lands))
			finalize(t, s, landing(l, lands))
			if got := total(t, s)[true]; got != 1005 {
				t.Errorf("%d lamports are booked, want 1005: the cost of one attempt and the fee of the other", got)
			}
		})
	}
}
