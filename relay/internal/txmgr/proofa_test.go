package txmgr_test

import (
	"math/big"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fp"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

// negateA returns a proof's bytes with −A in place of A.
func negateA(proof []byte) []byte {
	out := append([]byte(nil), proof...)
	y := new(big.Int).SetBytes(out[32:64])
	y.Sub(fp.Modulus(), y).FillBytes(out[32:64])
	return out
}

// TestCopiedProofWithNegatedAPinsNothing: a stranger who copies a proof and negates A must
// not make the relay refuse honest clients.
func TestCopiedProofWithNegatedAPinsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	w.run(r)
	req, to := w.withdrawal(sol)
	copied := req
	copied.Proof = negateA(req.Proof)
	negated := w.done(w.submit(r, copied).ID)
	if negated.State != submission.Failed || negated.Failure.Code != refusal.ProofInvalid || negated.ProofAEncoding != "negated" {
		t.Fatalf("the copy ended as %+v, failure %v; want it failed with proof_invalid", negated, negated.Failure)
	}
	if encoding, err := w.store.PinnedProofA(t.Context(), w.key.Hash()); err != nil || encoding != "" || r.count("signed") != 0 {
		t.Fatalf("the copy pinned %q after %d signatures (%v), want no pin and no signature", encoding, r.count("signed"), err)
	}
	honest := w.done(w.submit(r, req).ID)
	if honest.State != submission.Completed || w.balance(to) != sol-8_000_000 {
		t.Fatalf("the honest proof's submission ended as %+v, failure %v; want it completed", honest, honest.Failure)
	}
	w.eventually("the submission is finalized", func() bool { return w.get(honest.ID).Finalized })
	later := w.relay(nil) // reads the pin from the database
	again, _ := w.withdrawal(sol)
	again.Proof = negateA(again.Proof)
	_, err := later.Submit(t.Context(), again)
	if refused := wantCode(t, err, refusal.ProofInvalid); refused.Message == negated.Failure.Message {
		t.Errorf("the copy is refused with %q, want the refusal for a pinned encoding", refused.Message)
	}
}
