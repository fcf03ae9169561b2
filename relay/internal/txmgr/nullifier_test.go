package txmgr_test

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// A database may lose writes in a failover: then only the chain shows that a transaction of ours
// has landed.
func TestALandingThatTheDatabaseLostIsFoundByItsNullifier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, to := w.withdrawal(sol)
	s := w.submit(r, req)
	w.land(w.payer, w.get(s.ID).Call) // by our payer, and no attempt of it is in the database
	w.run(r)
	done := w.done(s.ID)
	if done.State != submission.Completed || done.Signature == nil || r.of("adopted") != 1 || r.of("signed") != 0 {
		t.Fatalf("the submission ended as %+v, failure %v, after %d signatures", done, done.Failure, r.of("signed"))
	}
	if w.balance(to) != sol-8_000_000 {
		t.Error("the recipient was not paid exactly once")
	}
	w.eventually("it is finalized", func() bool { return w.get(s.ID).Finalized })
}

// Another transaction of our own payer is not this submission's landing: it paid another recipient.
func TestANoteSpentByAnotherSubmissionOfOursIsNoLanding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, to := w.withdrawal(sol)
	s := w.submit(r, req)
	_, elsewhere := w.withdrawal(sol)
	in := w.inputs(-sol, elsewhere)
	in.Nullifiers = w.get(s.ID).Call.Inputs.Nullifiers
	call := *w.get(s.ID).Call
	call.Inputs, call.Recipient, call.Proof = in, elsewhere, w.prove(in)
	w.land(w.payer, &call)
	w.run(r)
	done := w.done(s.ID)
	if done.State != submission.Failed || done.Failure.Code != refusal.NullifierSpent {
		t.Fatalf("the submission ended as %+v, failure %v, want its note spent", done, done.Failure)
	}
	if w.balance(to) != 0 {
		t.Error("its recipient was paid all the same")
	}
}
