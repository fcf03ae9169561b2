package txmgr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// An adopted landing may contain another proof of the same statement, whose A has the other encoding.
// A pin derived from the submission's own proof could be wrong for ever.
func TestAdoptedLandingPinsNoEncoding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	req, _ := w.withdrawal(sol)
	s := w.submit(r, req)
	w.land(w.payer, w.get(s.ID).Call)
	w.run(r)
	w.eventually("the submission is finalized", func() bool { return w.get(s.ID).Finalized })
	if encoding, err := w.store.PinnedProofA(t.Context(), w.key.Hash()); err != nil || encoding != "" || r.count("adopted") != 1 {
		t.Errorf("the pinned encoding is %q (%v) after %d adopted landings, want none after 1", encoding, err, r.count("adopted"))
	}
}

// TestWrongPinIsReplaced: proofs that contradict a pin are simulated before they are
// refused, and the first that is finalized replaces the pin.
func TestWrongPinIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, key := t.Context(), w.key.Hash()
	_, err := w.store.Pool.Exec(ctx, `INSERT INTO proof_signs (key_hash, sign, signature) VALUES ($1, 'negated', $2)`, key[:], make([]byte, 64))
	must(t, err)
	r := w.relay(nil)
	w.run(r)
	req, to := w.withdrawal(sol)
	id := w.submit(r, req).ID
	w.eventually("the submission is finalized", func() bool { return w.get(id).Finalized })
	if encoding, err := w.store.PinnedProofA(ctx, key); err != nil || encoding != "plain" || w.balance(to) == 0 {
		t.Errorf("the pinned encoding is %q (%v) and the recipient holds %d; want plain, as in the proof that landed", encoding, err, w.balance(to))
	}
	negated, _ := w.withdrawal(sol)
	negated.Proof = negateA(negated.Proof)
	w.clock.advance(time.Minute) // the relay's cached pin is outdated by now
	_, err = r.Submit(ctx, negated)
	if refused := wantCode(t, err, refusal.ProofInvalid); !strings.Contains(refused.Message, "relay proof-a") {
		t.Errorf("the refusal is %q, want it to name the command relay proof-a", refused.Message)
	}
}

// TestConfiguredEncodingExcludesTheOther: no simulation overrides a configured encoding.
func TestConfiguredEncodingExcludesTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	negated, err := submission.NewProofAPolicy("negated", w.store, w.key.Hash(), w.clock.now)
	must(t, err)
	if ok, err := negated.Accepts(t.Context(), groth16.Plain); ok || err != nil || !negated.Configured() {
		t.Errorf("plain is accepted: %v (%v); want false, because negated is configured", ok, err)
	}
	auto, err := submission.NewProofAPolicy("auto", w.store, w.key.Hash(), w.clock.now)
	must(t, err)
	if ok, err := auto.Accepts(t.Context(), groth16.Plain); !ok || err != nil || auto.Configured() {
		t.Errorf("plain is accepted: %v (%v); want true, because no encoding is pinned", ok, err)
	}
}
