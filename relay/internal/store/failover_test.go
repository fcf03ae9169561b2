package store

import (
	"context"
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// A standby is promoted without the commit of the last claim, and gives the next claim
// the same epoch. The process of the lost claim still runs and considers itself the
// owner.
func TestAnEpochReusedByAFailoverBelongsToTheNewOwner(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	all := moves(ctx, s)
	type write func(txmgr.Lease) error
	moveUnderLease := func(m Move) write {
		return func(l txmgr.Lease) error { return all[m](l, l.Owner) }
	}
	record := func(l txmgr.Lease) error { return s.RecordAttempt(ctx, l, attempt(2)) }
	reject := func(l txmgr.Lease) error { return s.MarkAttemptRejected(ctx, l, solana.Signature{1}) }
	markDead := func(l txmgr.Lease) error {
		return s.MarkAttemptsDead(ctx, l, []txmgr.DeadAttempt{{Signature: solana.Signature{1}, Paid: 5000}})
	}
	pin := func(l txmgr.Lease) error {
		return oneLease(s.Finalize(ctx, []submission.Landing{landing(l, 1)}, []submission.ProofAPin{{Encoding: "plain", Signature: solana.Signature{1}}}))
	}
	batchOf := func(write func(context.Context, []submission.Landing) ([]txmgr.Lease, error), one func(txmgr.Lease) submission.Landing) write {
		return func(l txmgr.Lease) error { return oneLease(write(ctx, []submission.Landing{one(l)})) }
	}
	executedLanding := func(l txmgr.Lease) submission.Landing { return secondLegLanding(l, 1, submission.PhaseExecuted) }
	finalize := func(ctx context.Context, l []submission.Landing) ([]txmgr.Lease, error) {
		return s.Finalize(ctx, l, nil)
	}
	tests := map[string]struct {
		prepare func(*testing.T, *Store, submission.State, uuid.UUID, uint64) txmgr.Lease
		state   submission.State
		write   write
		dead    bool // the attempt is dead
	}{
		"a submission is released":             {stateOf, submission.Processing, moveUnderLease(MoveRelease), false},
		"an attempt is recorded":               {stateOf, submission.Processing, record, false},
		"an attempt is rejected":               {stateOf, submission.Processing, reject, false},
		"an attempt is marked dead":            {stateOf, submission.Processing, markDead, false},
		"a submission completes":               {stateOf, submission.Processing, moveUnderLease(MoveComplete), false},
		"a submission fails":                   {stateOf, submission.Processing, moveUnderLease(MoveFail), true},
		"a completed submission is released":   {stateOf, submission.Completed, moveUnderLease(MoveRelease), false},
		"a submission is finalized":            {stateOf, submission.Completed, moveUnderLease(MoveFinalize), false},
		"a submission is finalized with a pin": {stateOf, submission.Completed, pin, false},
		"a completed submission is reopened":   {stateOf, submission.Completed, moveUnderLease(MoveReopen), false},
		"a second leg is released":             {secondLegOf, submission.Processing, moveUnderLease(MoveRelease), false},
		"an execution is recorded":             {secondLegOf, submission.Processing, record, false},
		"an execution is marked dead":          {secondLegOf, submission.Processing, markDead, false},
		"a swap's phase is updated":            {secondLegOf, submission.Processing, func(l txmgr.Lease) error { return s.UpdateSwap(ctx, l, submission.PhaseQuoted, 7) }, false},
		"a second leg completes":               {secondLegOf, submission.Processing, batchOf(s.Complete, executedLanding), false},
		"a second leg is finalized":            {secondLegOf, submission.Completed, batchOf(finalize, executedLanding), false},
		"a completed second leg is reopened":   {secondLegOf, submission.Completed, moveUnderLease(MoveReopen), false},
		"a second leg fails":                   {secondLegOf, submission.Processing, moveUnderLease(MoveFail), true},
	}
	n := uint64(0)
	for name, test := range tests {
		n++
		exec(t, s, `TRUNCATE submissions, requests, reservations, attempts, spend_buckets, proof_signs, swaps`)
		first, lostOwner, newOwner := worker(t, s), worker(t, s), worker(t, s)
		l := test.prepare(t, s, test.state, first, n)
		if test.state == submission.Processing {
			ok(t, s.RecordAttempt(ctx, l, attempt(1)))
			exec(t, s, `UPDATE attempts SET dead = $1`, test.dead)
		}
		ok(t, s.Release(ctx, l, 0, ""))
		takeOver(t, s, l.ID, lostOwner)
		lostLease := get(t, s, l.ID).Lease()
		exec(t, s, `UPDATE submissions SET lease_owner = NULL, epoch = $2 WHERE id = $1`, l.ID, l.Epoch) // undo the claim
		takeOver(t, s, l.ID, newOwner)
		newLease := get(t, s, l.ID).Lease()
		if lostLease.Epoch != newLease.Epoch || lostLease.Owner != lostOwner || newLease.Owner != newOwner {
			t.Fatalf("%s: the leases are %+v and %+v, want the same epoch with two owners", name, lostLease, newLease)
		}
		before := dump(t, s, l.ID)
		if err := test.write(lostLease); !errors.Is(err, txmgr.ErrLeaseLost) {
			t.Errorf("%s with the lost lease: %v, want ErrLeaseLost", name, err)
		}
		if diff := cmp.Diff(before, dump(t, s, l.ID)); diff != "" {
			t.Errorf("%s with the lost lease: rows changed (-before +after):\n%s", name, diff)
		}
		if err := test.write(newLease); err != nil {
			t.Errorf("%s with the new lease: %v, want no error", name, err)
		}
		if dump(t, s, l.ID) == before {
			t.Errorf("%s with the new lease: no row changed", name)
		}
	}
}

// takeOver claims the submission for the worker.
func takeOver(t *testing.T, s *Store, id uuid.UUID, w uuid.UUID) {
	t.Helper()
	ok(t, moves(t.Context(), s)[MoveClaim](txmgr.Lease{ID: id}, w))
}

// A batch may contain landings of both owners of an epoch, in either order.
func TestABatchSkipsLandingsOfAnotherOwner(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	w, other := worker(t, s), worker(t, s)
	var batch []submission.Landing
	var want []txmgr.Lease
	for n := range byte(4) {
		l := landing(stateOf(t, s, submission.Processing, w, uint64(n)+1), n+1)
		wrong := landing(l.Lease, n+101)
		wrong.Owner = other
		want = append(want, wrong.Lease)
		if n%2 == 0 {
			batch = append(batch, l, wrong)
		} else {
			batch = append(batch, wrong, l)
		}
	}
	lost, err := s.Complete(ctx, batch)
	if diff := cmp.Diff(want, lost); diff != "" || err != nil {
		t.Errorf("leases that Complete reports lost (%v) (-want +got):\n%s", err, diff)
	}
	lost, err = s.Finalize(ctx, batch, nil)
	if diff := cmp.Diff(want, lost); diff != "" || err != nil {
		t.Errorf("leases that Finalize reports lost (%v) (-want +got):\n%s", err, diff)
	}
	for _, l := range batch {
		if got := get(t, s, l.ID); l.Owner == w && *got.Signature != l.Signature {
			t.Errorf("submission %s landed with signature %s, want its owner's %s", l.ID, got.Signature, l.Signature)
		}
	}
}
