package txmgr_test

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// A database may lose writes in a failover. Then only the chain shows that a transaction of the relay
// has landed.
func TestALandingThatTheDatabaseLostIsFoundByItsNullifier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, to := w.withdrawal(sol)
	s := w.submit(r, req)
	w.land(w.payer, w.get(s.ID).Call) // paid by the relay's payer, but the database has no such attempt
	w.run(r)
	done := w.done(s.ID)
	if done.State != submission.Completed || done.Signature == nil || r.count("adopted") != 1 || r.count("signed") != 0 {
		t.Fatalf("the submission ended as %+v, failure %v, after %d signatures; want it completed after none", done, done.Failure, r.count("signed"))
	}
	if w.balance(to) != sol-8_000_000 {
		t.Error("the recipient was not paid exactly once")
	}
	w.eventually("the submission is finalized", func() bool { return w.get(s.ID).Finalized })
}

// A transaction of the relay's own payer that pays another recipient is not this submission's landing.
func TestSpendByAnotherOwnSubmissionIsNoLanding(t *testing.T) {
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
		t.Fatalf("the submission ended as %+v, failure %v; want it failed with nullifier_spent", done, done.Failure)
	}
	if w.balance(to) != 0 {
		t.Errorf("the recipient of the failed submission holds %d lamports, want 0", w.balance(to))
	}
}
