package txmgr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// The transaction that is found may hold another proof of the same statement, with the other sign:
// a pin derived from this submission's proof would be wrong for ever.
func TestALandingThatIsNoAttemptPinsNoSign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, _ := w.withdrawal(sol)
	s := w.submit(r, req)
	w.land(w.payer, w.get(s.ID).Call)
	w.run(r)
	w.eventually("it is finalized", func() bool { return w.get(s.ID).Finalized })
	if sign, err := w.store.PinnedProofA(t.Context(), w.key.Hash()); err != nil || sign != "" || r.of("adopted") != 1 {
		t.Errorf("the pinned sign is %q (%v) after %d adoptions, want none", sign, err, r.of("adopted"))
	}
}

// TestAWrongPinGivesWay: honest proofs are tried on the chain before a pin refuses
// them, and the first that is final takes its place.
func TestAWrongPinGivesWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, key := t.Context(), w.key.Hash()
	_, err := w.store.Pool.Exec(ctx, `INSERT INTO proof_signs (key_hash, sign, signature) VALUES ($1, 'negated', $2)`, key[:], make([]byte, 64))
	must(t, err)
	r := w.relay(nil)
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("it is final", func() bool { return w.get(id).Finalized })
	if sign, err := w.store.PinnedProofA(ctx, key); err != nil || sign != "plain" || w.balance(to) == 0 {
		t.Errorf("the pinned sign is %q (%v), want that of the proof that landed", sign, err)
	}
	turned, _ := w.withdrawal(sol)
	turned.Proof = negateA(turned.Proof)
	w.clock.advance(time.Minute) // another pod's pin is learnt by now
	_, err = r.Submit(ctx, turned)
	if why := wantCode(t, err, refusal.ProofInvalid); !strings.Contains(why.Message, "relay proof-a") {
		t.Errorf("the refusal %q does not say what to do", why.Message)
	}
}

// TestAConfiguredEncodingIsNotTried: no simulation overrides the operator's setting.
func TestAConfiguredEncodingIsNotTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signs, err := submission.NewProofAPolicy("negated", w.store, w.key.Hash(), w.clock.now)
	must(t, err)
	if ok, err := signs.Accepts(t.Context(), groth16.Plain); ok || err != nil || !signs.Configured() {
		t.Errorf("plain is accepted: %v (%v), although negated is configured", ok, err)
	}
	auto, err := submission.NewProofAPolicy("auto", w.store, w.key.Hash(), w.clock.now)
	must(t, err)
	if ok, err := auto.Accepts(t.Context(), groth16.Plain); !ok || err != nil || auto.Configured() {
		t.Errorf("plain is not accepted (%v), although nothing is known", err)
	}
}
