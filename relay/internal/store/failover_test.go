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

// A standby that is promoted without the last commits has not seen a claim, and
// gives the next claim the same epoch. The process of the lost claim still runs
// and considers itself the owner.
func TestAnEpochReusedByAFailoverBelongsToTheNewOwner(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	all := moves(ctx, s)
	type write func(txmgr.Lease) error
	of := func(m Move) write {
		return func(l txmgr.Lease) error { return all[m](l, l.Owner) }
	}
	record := func(l txmgr.Lease) error { return s.RecordAttempt(ctx, l, attempt(2)) }
	refuse := func(l txmgr.Lease) error { return s.MarkAttemptRejected(ctx, l, solana.Signature{1}) }
	bury := func(l txmgr.Lease) error {
		return s.MarkAttemptsDead(ctx, l, []txmgr.DeadAttempt{{Signature: solana.Signature{1}, Paid: 5000}})
	}
	pin := func(l txmgr.Lease) error {
		return oneLease(s.Finalize(ctx, []submission.Landing{landing(l, 1)}, []submission.ProofAPin{{Encoding: "plain", Signature: solana.Signature{1}}}))
	}
	batch := func(write func(context.Context, []submission.Landing) ([]txmgr.Lease, error), one func(txmgr.Lease) submission.Landing) write {
		return func(l txmgr.Lease) error { return oneLease(write(ctx, []submission.Landing{one(l)})) }
	}
	executed := func(l txmgr.Lease) submission.Landing { return settled(l, 1, submission.PhaseExecuted) }
	finalize := func(ctx context.Context, l []submission.Landing) ([]txmgr.Lease, error) {
		return s.Finalize(ctx, l, nil)
	}
	tests := map[string]struct {
		make  func(*testing.T, *Store, submission.State, uuid.UUID, uint64) txmgr.Lease
		state submission.State
		write write
		dead  bool // the attempt
	}{
		"a submission is released":           {stateOf, submission.Processing, of(MoveRelease), false},
		"an attempt is recorded":             {stateOf, submission.Processing, record, false},
		"an attempt is refused":              {stateOf, submission.Processing, refuse, false},
		"an attempt is buried":               {stateOf, submission.Processing, bury, false},
		"a submission completes":             {stateOf, submission.Processing, of(MoveComplete), false},
		"a submission fails":                 {stateOf, submission.Processing, of(MoveFail), true},
		"a completed submission is released": {stateOf, submission.Completed, of(MoveRelease), false},
		"a submission is finalized":          {stateOf, submission.Completed, of(MoveFinalize), false},
		"a submission is finalized and pins": {stateOf, submission.Completed, pin, false},
		"a completed submission is reopened": {stateOf, submission.Completed, of(MoveReopen), false},
		"a settlement is released":           {settlementOf, submission.Processing, of(MoveRelease), false},
		"an execution is recorded":           {settlementOf, submission.Processing, record, false},
		"an execution is buried":             {settlementOf, submission.Processing, bury, false},
		"a swap's phase is noted":            {settlementOf, submission.Processing, func(l txmgr.Lease) error { return s.UpdateSwap(ctx, l, submission.PhaseQuoted, 7) }, false},
		"a settlement completes":             {settlementOf, submission.Processing, batch(s.Complete, executed), false},
		"a settlement is finalized":          {settlementOf, submission.Completed, batch(finalize, executed), false},
		"a completed settlement is reopened": {settlementOf, submission.Completed, of(MoveReopen), false},
		"a settlement fails":                 {settlementOf, submission.Processing, of(MoveFail), true},
	}
	n := uint64(0)
	for name, test := range tests {
		n++
		exec(t, s, `TRUNCATE submissions, requests, reservations, attempts, spend_buckets, proof_signs, swaps`)
		before, lost, now := worker(t, s), worker(t, s), worker(t, s)
		l := test.make(t, s, test.state, before, n)
		if test.state == submission.Processing {
			ok(t, s.RecordAttempt(ctx, l, attempt(1)))
			exec(t, s, `UPDATE attempts SET dead = $1`, test.dead)
		}
		ok(t, s.Release(ctx, l, 0, ""))
		takeOver(t, s, l.ID, lost)
		old := get(t, s, l.ID).Lease()
		exec(t, s, `UPDATE submissions SET lease_owner = NULL, epoch = $2 WHERE id = $1`, l.ID, l.Epoch) // as before the claim
		takeOver(t, s, l.ID, now)
		present := get(t, s, l.ID).Lease()
		if old.Epoch != present.Epoch || old.Owner != lost || present.Owner != now {
			t.Fatalf("%s: the leases are %+v and %+v, want one epoch under two owners", name, old, present)
		}
		was := dump(t, s, l.ID)
		if err := test.write(old); !errors.Is(err, txmgr.ErrLeaseLost) {
			t.Errorf("%s under the claim that was lost: %v, want ErrLeaseLost", name, err)
		}
		if diff := cmp.Diff(was, dump(t, s, l.ID)); diff != "" {
			t.Errorf("%s under the claim that was lost, which changes (-before +after):\n%s", name, diff)
		}
		if err := test.write(present); err != nil {
			t.Errorf("%s under the present claim: %v, want the write", name, err)
		}
		if dump(t, s, l.ID) == was {
			t.Errorf("%s under the present claim, which changes nothing", name)
		}
	}
}

// takeOver claims the submission for the worker.
func takeOver(t *testing.T, s *Store, id uuid.UUID, w uuid.UUID) {
	t.Helper()
	ok(t, moves(t.Context(), s)[MoveClaim](txmgr.Lease{ID: id}, w))
}

// One batch may carry both owners of an epoch, in either order.
func TestABatchIsWrittenUnderItsOwners(t *testing.T) {
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
		t.Errorf("complete (%v) loses (-want +got):\n%s", err, diff)
	}
	lost, err = s.Finalize(ctx, batch, nil)
	if diff := cmp.Diff(want, lost); diff != "" || err != nil {
		t.Errorf("finalize (%v) loses (-want +got):\n%s", err, diff)
	}
	for _, l := range batch {
		if got := get(t, s, l.ID); l.Owner == w && *got.Signature != l.Signature {
			t.Errorf("submission %s has landed as %s, want its owner's landing: %s", l.ID, got.Signature, l.Signature)
		}
	}
}
