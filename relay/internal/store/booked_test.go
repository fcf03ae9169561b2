package store

import (
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// outlay is a swap whose first leg costs 1000 lamports and books 500 for the second.
// An execution costs 300, with a fee of 5, and returns 200.
type outlay struct {
	t      *testing.T
	s      *Store
	worker uuid.UUID
	first  txmgr.Lease
	second txmgr.Lease
}

func (o *outlay) signFirst(n byte) {
	a := attempt(n)
	a.Cost, a.SecondLegCost = 1000, 500
	ok(o.t, o.s.RecordAttempt(o.t.Context(), o.first, a))
}

func (o *outlay) sign(n byte, p txmgr.Purpose) {
	a := attemptFor(n, p)
	a.Cost = 300
	ok(o.t, o.s.RecordAttempt(o.t.Context(), o.second, a))
}

func (o *outlay) bury(l txmgr.Lease, n byte, paid uint64) {
	ok(o.t, o.s.MarkAttemptsDead(o.t.Context(), l, []txmgr.DeadAttempt{{Signature: solana.Signature{n}, Paid: paid}}))
}

func (o *outlay) landFirst(n byte) { complete(o.t, o.s, landing(o.first, n)) }

// begin lands the first leg and claims the second.
func (o *outlay) begin() {
	o.signFirst(1)
	o.landFirst(1)
	o.second = claimSettlements(o.t, o.s, o.worker)[0].Lease
}

// land has the second leg end with a transaction, and be final.
func (o *outlay) land(n byte, p submission.Phase, returned uint64) {
	l := settled(o.second, n, p)
	l.Returned = returned
	complete(o.t, o.s, l)
	finalize(o.t, o.s, l)
}

// TestASwapsOutlayIsBookedWithItsFirstLeg: at no time less is booked than was spent,
// and in the end as much.
func TestASwapsOutlayIsBookedWithItsFirstLeg(t *testing.T) {
	t.Parallel()
	type step struct {
		do            func(o *outlay)
		spent, booked int64
	}
	begin := step{(*outlay).begin, 1000, 1500}
	execute := func(n byte) func(o *outlay) {
		return func(o *outlay) { o.sign(n, txmgr.PurposeExecute) }
	}
	landed := func(n byte, p submission.Phase, returned uint64) func(o *outlay) {
		return func(o *outlay) { o.land(n, p, returned) }
	}
	died := func(n byte, paid uint64) func(o *outlay) {
		return func(o *outlay) { o.bury(o.second, n, paid) }
	}
	stories := map[string][]step{
		"it is executed": {begin, {execute(8), 1000, 1500}, {landed(8, submission.PhaseExecuted, 200), 1100, 1100}},
		"it is refunded": {begin, {func(o *outlay) { o.sign(8, txmgr.PurposeRefund) }, 1000, 1500}, {landed(8, submission.PhaseRefunded, 0), 1300, 1300}},
		"an execution fails on the chain, the next lands": {
			begin, {execute(8), 1000, 1500}, {died(8, 5), 1005, 1505}, {died(8, 5), 1005, 1505}, {execute(9), 1005, 1505}, {landed(9, submission.PhaseExecuted, 200), 1105, 1105},
		},
		"a stranger executes it":                      {begin, {execute(8), 1000, 1500}, {died(8, 5), 1005, 1505}, {landed(99, submission.PhaseExecuted, 0), 1005, 1005}},
		"an execution lands that counted as dead":     {begin, {execute(8), 1000, 1500}, {died(8, 0), 1000, 1500}, {landed(8, submission.PhaseExecuted, 200), 1100, 1100}},
		"the first leg dies, and is signed once more": {{func(o *outlay) { o.signFirst(1) }, 0, 1500}, {func(o *outlay) { o.bury(o.first, 1, 0) }, 0, 0}, {func(o *outlay) { o.signFirst(2) }, 0, 1500}},
		"the first leg fails on the chain":            {{func(o *outlay) { o.signFirst(1) }, 0, 1500}, {func(o *outlay) { o.bury(o.first, 1, 5) }, 5, 5}},
		"a fork undoes both legs": {
			begin, {execute(8), 1000, 1500},
			{func(o *outlay) { ok(o.t, o.s.Reopen(o.t.Context(), o.first)); o.bury(o.first, 1, 0) }, 0, 0},
			{died(8, 0), 0, 0},
			{func(o *outlay) { o.signFirst(2); o.landFirst(2) }, 1000, 1500},
			{execute(9), 1000, 1500}, {landed(9, submission.PhaseExecuted, 200), 1100, 1100},
		},
		"the first leg is buried after the end": {
			begin, {execute(8), 1000, 1500}, {landed(8, submission.PhaseExecuted, 200), 1100, 1100},
			{func(o *outlay) { ok(o.t, o.s.Reopen(o.t.Context(), o.first)); o.bury(o.first, 1, 0) }, 100, 100},
		},
		"an earlier release signed both": {
			{func(o *outlay) {
				o.begin()
				o.sign(8, txmgr.PurposeExecute)
				exec(o.t, o.s, `UPDATE attempts SET booked = NULL`)
				exec(o.t, o.s, `DELETE FROM spend_buckets`)
				spend(o.t, o.s, false, 1000+300)
			}, 1000, 1300},
			{landed(8, submission.PhaseExecuted, 200), 1100, 1100},
		},
	}
	for name, steps := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			w := worker(t, s)
			o := &outlay{t: t, s: s, worker: w, first: held(t, s, swap(1, 0)).Lease}
			exec(t, s, `UPDATE submissions SET lease_owner = $1 WHERE id = $2`, w, o.first.ID)
			o.first.Owner = w
			for i, step := range steps {
				step.do(o)
				if got := total(t, s)[false]; got != step.booked || got < step.spent {
					t.Errorf("after step %d %d lamports are booked, want %d, including %d spent", i, got, step.booked, step.spent)
				}
			}
		})
	}
}
