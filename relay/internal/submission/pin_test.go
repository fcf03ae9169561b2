package submission_test

import "testing"

// The transaction that is found may hold another proof of the same statement,
// with the other sign: a pin by this submission's would be for ever.
func TestALandingThatIsNoAttemptPinsNoSign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, _ := w.withdrawal(sol)
	s := w.submit(r, req)
	w.land(w.payer, w.get(s.ID).Call)
	w.run(r)
	w.eventually("it is finalized", func() bool { return w.get(s.ID).Finalized })
	if sign, err := w.store.PinnedSign(t.Context(), w.key.Hash()); err != nil || sign != "" || r.of("adopted") != 1 {
		t.Errorf("the pinned sign is %q (%v) after %d adoptions, want none", sign, err, r.of("adopted"))
	}
}
